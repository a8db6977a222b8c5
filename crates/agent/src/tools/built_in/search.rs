//! verl's search tool (`verl.tools.search_tool.SearchTool` of verl up to 0.7), for a retrieval service like Search-R1's.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use ureq::http::Uri;
use ureq::{Agent, Error};

use super::settings::{address, count, seconds};
use super::slots::Slots;
use super::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};
use burnish_reward::remote::client;

/// The limit of attempts while a service fails temporarily.
const TRIES: u32 = 10;
/// The pause before the second attempt; each further pause is longer by this time.
const PAUSE: Duration = Duration::from_secs(1);
/// The limit of a reply in bytes.
const MAX_BYTES: u64 = 16 << 20;

pub(super) static SEARCH: BuiltInKind = BuiltInKind {
    name: "search",
    class_names: &["verl.tools.search_tool.SearchTool"],
    doc: "passages of a retrieval service, requested by POST {queries, topk, return_scores}",
    settings: &[
        "retrieval_service_url",
        "topk",
        "default_timeout",
        "timeout",
        "rate_limit",
        "num_workers",
        "enable_global_rate_limit",
    ],
    schema: || {
        json!({"type": "function", "function": {
            "name": "search",
            "description": "Searches for passages that answer the queries.",
            "parameters": {
                "type": "object",
                "properties": {"query_list": {"type": "array", "items": {"type": "string"}, "description": "The queries"}},
                "required": ["query_list"],
            },
        }})
    },
    make: |config| {
        let url = address(config, "retrieval_service_url", "http://127.0.0.1:8000/retrieve")?;
        let own_key = if config["default_timeout"].is_null() { "timeout" } else { "default_timeout" };
        Ok(Box::new(Search {
            agent: client(None),
            url,
            topk: count(config, "topk", 3)?,
            timeout: seconds(config, own_key, 30)?,
            slots: Slots::new(count(config, "rate_limit", 120)?.min(count(config, "num_workers", 120)?)),
            pause: PAUSE,
        }))
    },
};

struct Search {
    agent: Agent,
    url: Uri,
    topk: u64,
    /// The time limit of one attempt.
    timeout: Duration,
    slots: Slots,
    pause: Duration,
}

impl BuiltInTool for Search {
    fn waits(&self) -> bool {
        true
    }

    /// Matches verl's `execute`: errors are results too, and the reward is 0. Attempts end at the time limit of the call.
    fn call(&self, arguments: &Value, _: &mut Value, timeout: Duration) -> Result<ToolOutput, ToolError> {
        let end = Instant::now() + timeout;
        let Some(queries) = arguments["query_list"].as_array().filter(|queries| !queries.is_empty()) else {
            return Ok(text_output("Error: 'query_list' is missing, empty, or not a list in parameters."));
        };
        let Some(_slot) = self.slots.take(end) else { return Err(ToolError::late(timeout)) };
        let body = json!({"queries": queries, "topk": self.topk, "return_scores": true}).to_string();
        for attempt in 1.. {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.ask(&body, left.min(self.timeout)) {
                Ok(answer) => return Ok(text_output(&passages(&answer))),
                Err((why, true)) if attempt < TRIES => {
                    tracing::debug!("the search service {} fails, trying again: {why}", self.url);
                    let pause = self.pause * attempt;
                    if pause >= end.saturating_duration_since(Instant::now()) {
                        break;
                    }
                    thread::sleep(pause);
                }
                Err((why, _)) => return Ok(text_output(&format!("Search error: API Call Failed: {why}"))),
            }
        }
        Err(ToolError::late(timeout))
    }
}

impl Search {
    /// Makes one attempt; the `bool` of an error is true if another attempt may succeed.
    fn ask(&self, body: &str, timeout: Duration) -> Result<Value, (String, bool)> {
        let broken = |error: Error| match error {
            Error::Timeout(_) => (format!("Timeout Error: no answer within {timeout:?}"), true),
            Error::BodyExceedsLimit(max) => (format!("API Request Error: the answer has more than {max} bytes"), false),
            error => (format!("Connection Error: {error}"), true),
        };
        let request = self.agent.post(&self.url).content_type("application/json").header("accept", "application/json");
        let mut response = request.config().timeout_global(Some(timeout)).build().send(body).map_err(broken)?;
        let status = response.status().as_u16();
        let bytes = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec().map_err(broken)?;
        match status {
            200..=299 => {
                serde_json::from_slice(&bytes).map_err(|error| (format!("API Response JSON Decode Error: {error}"), false))
            }
            500 | 502..=504 => Err((format!("API Request Error: Server Error ({status})"), true)),
            _ => Err((format!("API Request Error: status {status}"), false)),
        }
    }
}

/// Returns the result in the form of verl's tool: JSON with one field.
fn text_output(result: &str) -> ToolOutput {
    ToolOutput::text(format!("{{\"result\": {}}}", Value::from(result)))
}

/// Returns the passages of a reply as one text: numbered within each query, with lines of hyphens between queries.
fn passages(answer: &Value) -> String {
    let lists = match &answer["result"] {
        Value::Array(lists) if !lists.is_empty() => lists,
        Value::Null | Value::Array(_) if answer.is_object() => return "No search results found.".to_owned(),
        _ => return "Error processing search results: `result` is not a list".to_owned(),
    };
    let mut texts = Vec::with_capacity(lists.len());
    for list in lists {
        let mut text = String::new();
        for (index, found) in list.as_array().into_iter().flatten().enumerate() {
            let Some(content) = found["document"]["contents"].as_str() else {
                return "Error processing search results: a passage has no document.contents".to_owned();
            };
            let (title, rest) = content.split_once('\n').unwrap_or((content, ""));
            text += &format!("Doc {} (Title: {title})\n{rest}\n\n", index + 1);
        }
        texts.push(text.trim().to_owned());
    }
    texts.join("\n---\n")
}

#[cfg(test)]
mod tests {
    use super::super::test_server::{drip, serve};
    use super::*;

    fn search(url: &str) -> Search {
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        Search {
            agent,
            url: url.parse().unwrap(),
            topk: 2,
            timeout: Duration::from_secs(5),
            slots: Slots::new(4),
            pause: Duration::from_millis(5),
        }
    }

    fn ask(tool: &Search, arguments: &Value) -> Result<String, ToolError> {
        tool.call(arguments, &mut Value::Null, Duration::from_secs(5)).map(|text_output| text_output.text)
    }

    #[test]
    fn passages_are_verls_text_and_trouble_is_told() {
        let one = json!({"result": [[
            {"document": {"contents": "\"Paris\"\nIs in France.\nOn the Seine."}, "score": 0.5},
            {"document": {"contents": "Lyon"}, "score": 0.25}], []]});
        let (url, requests) =
            serve(vec![(500, "busy".to_owned()), (200, one.to_string()), (200, "{}".to_owned()), (404, String::new())]);
        let tool = search(&url);
        let arguments = json!({"query_list": ["capital of France"]});
        let text = ask(&tool, &arguments).unwrap();
        let expected = "Doc 1 (Title: \"Paris\")\nIs in France.\nOn the Seine.\n\nDoc 2 (Title: Lyon)\n---\n";
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"result": expected}));
        assert_eq!(requests.lock().unwrap()[1], json!({"queries": ["capital of France"], "topk": 2, "return_scores": true}));
        assert_eq!(ask(&tool, &arguments).unwrap(), "{\"result\": \"No search results found.\"}");
        assert!(ask(&tool, &arguments).unwrap().contains("status 404"));
        assert!(ask(&tool, &json!({"query_list": "x"})).unwrap().contains("missing, empty, or not a list"));
        assert!(ask(&tool, &Value::Null).unwrap().contains("missing, empty, or not a list"));
    }

    #[test]
    fn a_service_that_is_not_there_or_drips_takes_no_longer_than_the_call_may() {
        for url in ["http://127.0.0.1:9/retrieve".to_owned(), drip()] {
            let tool = Search { pause: Duration::from_millis(80), ..search(&url) };
            let started = Instant::now();
            let failed = tool.call(&json!({"query_list": ["x"]}), &mut Value::Null, Duration::from_millis(200)).unwrap_err();
            assert_eq!(failed, ToolError::late(Duration::from_millis(200)));
            assert!(started.elapsed() < Duration::from_secs(20));
        }
    }
}
