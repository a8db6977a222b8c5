//! The requests of `/v1/chat/completions` and `/v1/completions`.

use serde_json::{Map, Value};

use super::body_json::JsonPrompt;
use super::conversation_key::conversation_key;
use super::error::ApiError;
use super::fields::RequestFields;
use super::messages::checked;
use super::options::{MAX_LOG_PROBS, RequestOptions};

/// Fields that have no effect on the replies of this server.
const HARMLESS: &[&str] = &[
    "store",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "request_id",
    "priority",
    "user",
];

/// A conversation to continue.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    pub model: Option<String>,
    /// The messages as received: at least one, each with a role.
    pub messages: Vec<Value>,
    /// The tools in OpenAI's form.
    pub tools: Vec<Value>,
    /// True if calls in the response are parsed (`tool_choice` is not `none`).
    pub reads_calls: bool,
    /// False if the response may have only one call; the others are dropped, as in vLLM.
    pub parallel_calls: bool,
    /// Variables of the chat template other than messages and tools.
    pub variables: Map<String, Value>,
    pub conversation: Option<String>,
    pub options: RequestOptions,
    /// Unknown fields, which are ignored.
    pub ignored: Vec<String>,
}

/// Texts to continue.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRequest {
    pub model: Option<String>,
    /// The prompts, at least one.
    pub prompts: Vec<CompletionPrompt>,
    pub conversation: Option<String>,
    pub options: RequestOptions,
    /// Unknown fields, which are ignored.
    pub ignored: Vec<String>,
}

/// The prompt of a text completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionPrompt {
    Text(String),
    Ids(Vec<u32>),
}

impl ChatRequest {
    /// Parses a body. `header` is the header `X-Conversation`; `max` is the limit of `n`.
    ///
    /// # Errors
    /// If a field is invalid, or asks for an unsupported feature.
    pub fn parse(body: &[u8], header: Option<&str>, max: usize) -> Result<Self, ApiError> {
        Self::take(RequestFields::parse(body)?, header, max)
    }

    /// Takes the fields of a request, as [`ChatRequest::parse`] does.
    pub(super) fn take(mut fields: RequestFields, header: Option<&str>, max: usize) -> Result<Self, ApiError> {
        let messages = checked(fields.list("messages")?.unwrap_or_default())?;
        let tools = tools(fields.list("tools")?.unwrap_or_default())?;
        let reads_calls = tool_choice(fields.take("tool_choice")?)? && !tools.is_empty();
        response_format(fields.take("response_format")?)?;
        if fields.flag("add_generation_prompt")? == Some(false) {
            return Err(ApiError::field(
                "add_generation_prompt",
                "`add_generation_prompt` must be true: the response is the assistant's",
            ));
        }
        let mut variables = fields.object("chat_template_kwargs")?.unwrap_or_default();
        if let Some(effort) = fields.text("reasoning_effort")? {
            variables.entry("reasoning_effort").or_insert(effort.into());
        }
        for reserved in ["messages", "tools", "add_generation_prompt"] {
            if variables.contains_key(reserved) {
                let message = format!("`chat_template_kwargs` must not contain `{reserved}`: use the request's own field");
                return Err(ApiError::field("chat_template_kwargs", message));
            }
        }
        let mut options = RequestOptions::take(&mut fields, max)?;
        options.log_probs = fields.flag("logprobs")?.unwrap_or(false);
        options.top_log_probs = fields.up_to("top_logprobs", MAX_LOG_PROBS)?.unwrap_or(0);
        if options.top_log_probs > 0 && !options.log_probs {
            return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs`: true"));
        }
        if options.echo {
            return Err(ApiError::field("echo", "`echo` is not supported in chats: use `/v1/completions`"));
        }
        let parallel_calls = fields.flag("parallel_tool_calls")?.unwrap_or(true);
        let (model, conversation) = (fields.text("model")?, key(&mut fields, header)?);
        Ok(Self {
            model,
            messages,
            tools,
            reads_calls,
            parallel_calls,
            variables,
            conversation,
            options,
            ignored: unread(fields),
        })
    }
}

impl TextRequest {
    /// Parses a body. `header` is the header `X-Conversation`; `max` is the limit of `n`, and of prompts.
    ///
    /// # Errors
    /// If a field is invalid, or asks for an unsupported feature.
    pub fn parse(body: &[u8], header: Option<&str>, max: usize) -> Result<Self, ApiError> {
        let mut fields = RequestFields::parse(body)?;
        let prompts = prompts(fields.prompts("prompt")?)?;
        if prompts.len() > max {
            return Err(ApiError::field(
                "prompt",
                format!("`prompt` has {} texts, but it must have at most {max}", prompts.len()),
            ));
        }
        response_format(fields.take("response_format")?)?;
        let mut options = RequestOptions::take(&mut fields, max)?;
        if prompts.len().saturating_mul(options.n) > max {
            return Err(ApiError::field("n", format!("`n` times the number of prompts must be at most {max}")));
        }
        let log_probs = fields.up_to("logprobs", MAX_LOG_PROBS)?;
        options.log_probs = log_probs.is_some();
        options.top_log_probs = log_probs.unwrap_or(0);
        let (model, conversation) = (fields.text("model")?, key(&mut fields, header)?);
        Ok(Self { model, prompts, conversation, options, ignored: unread(fields) })
    }
}

fn key(fields: &mut RequestFields, header: Option<&str>) -> Result<Option<String>, ApiError> {
    let (conversation, metadata) = (fields.text("conversation")?, fields.object("metadata")?);
    conversation_key(header, conversation, metadata.as_ref())
}

fn unread(mut fields: RequestFields) -> Vec<String> {
    for name in HARMLESS {
        fields.drop(name);
    }
    fields.unread()
}

fn tools(tools: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    let is_function = |tool: &Value| {
        let name = tool.pointer("/function/name").and_then(Value::as_str);
        tool.get("type").is_none_or(|kind| kind == "function") && name.is_some_and(|name| !name.is_empty())
    };
    match tools.iter().position(|tool| !is_function(tool)) {
        Some(i) => Err(ApiError::field(
            "tools",
            format!("`tools[{i}]` must be {{\"type\": \"function\", \"function\": {{\"name\": …}}}}"),
        )),
        None => Ok(tools),
    }
}

/// Returns true if calls are parsed.
fn tool_choice(choice: Option<Value>) -> Result<bool, ApiError> {
    match choice.as_ref().map(|choice| choice.as_str().unwrap_or_default()) {
        None | Some("auto") => Ok(true),
        Some("none") => Ok(false),
        _ => Err(ApiError::field("tool_choice", "`tool_choice` must be auto or none: forced calls are not supported")),
    }
}

fn response_format(format: Option<Value>) -> Result<(), ApiError> {
    match format {
        Some(format) if format.get("type").is_none_or(|kind| kind != "text") => Err(ApiError::field(
            "response_format",
            "`response_format` must be {\"type\": \"text\"}: responses are not constrained",
        )),
        _ => Ok(()),
    }
}

fn prompts(prompt: Option<JsonPrompt>) -> Result<Vec<CompletionPrompt>, ApiError> {
    let wrong =
        || ApiError::field("prompt", "`prompt` must be a text, a list of texts, a list of token ids, or a list of such lists");
    let one = |prompt: JsonPrompt| match prompt {
        JsonPrompt::Text(text) => Some(CompletionPrompt::Text(text)),
        JsonPrompt::Ids(ids) => ids.filter(|ids| !ids.is_empty()).map(CompletionPrompt::Ids),
        _ => None,
    };
    match prompt {
        None => Err(ApiError::field("prompt", "`prompt` is missing")),
        Some(JsonPrompt::List(list)) => list.into_iter().map(one).collect::<Option<_>>().ok_or_else(wrong),
        Some(JsonPrompt::Other(what)) => {
            Err(ApiError::field("prompt", format!("`prompt` must be text or token ids, not {what}")))
        }
        Some(JsonPrompt::Number(_)) => Err(ApiError::field("prompt", "`prompt` must be text or token ids, not a number")),
        Some(prompt) => one(prompt).map(|prompt| vec![prompt]).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_rollout::WantedScores;

    #[test]
    fn requests_name_the_field_that_is_wrong() {
        let with = |field: &str| format!(r#"{{"messages": [{{"role": "user", "content": "x"}}], {field}}}"#);
        let deep = format!(r#"{{"messages": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        for (body, param, part) in [
            ("{".to_owned(), "", "must be a JSON object: EOF"),
            ("[]".to_owned(), "", "must be a JSON object, not a list of 0"),
            ("{}".to_owned(), "messages", "at least one message"),
            (r#"{"messages": "x"}"#.to_owned(), "messages", "a list, not \"x\""),
            (r#"{"messages": [{"content": "x"}]}"#.to_owned(), "messages", "messages[0]"),
            (deep, "messages", "recursion limit"),
            (with(r#""temperature": -1"#), "temperature", "from 0, not -1"),
            (with(r#""top_p": 0"#), "top_p", "above 0"),
            (with(r#""n": 9"#), "n", "at most 8"),
            (with(r#""n": 0"#), "n", "from 1"),
            (with(r#""max_tokens": 1.5"#), "max_tokens", "not 1.5"),
            (with(r#""stop": [""]"#), "stop", "none of them empty"),
            (with(r#""top_logprobs": 21, "logprobs": true"#), "top_logprobs", "from 0 to 20, not 21"),
            (with(r#""top_logprobs": 2"#), "top_logprobs", "needs `logprobs`"),
            (with(r#""prompt_logprobs": -1"#), "prompt_logprobs", "from 0 to 20, not -1"),
            (with(r#""prompt_logprobs": 0, "stream": true"#), "prompt_logprobs", "not streamed"),
            (with(r#""echo": true, "max_tokens": 0"#), "echo", "use `/v1/completions`"),
            (with(r#""max_tokens": 0"#), "max_tokens", "from 1, not 0"),
            (with(r#""tool_choice": "required""#), "tool_choice", "auto or none"),
            (with(r#""tools": [{"type": "function"}]"#), "tools", "tools[0]"),
            (with(r#""response_format": {"type": "json_object"}"#), "response_format", "not constrained"),
            (with(r#""logit_bias": {"5": 1}"#), "logit_bias", "not supported"),
            (with(r#""chat_template_kwargs": {"messages": []}"#), "chat_template_kwargs", "the request's own"),
        ] {
            let ApiError { status, message, param: named, .. } = ChatRequest::parse(body.as_bytes(), None, 8).unwrap_err();
            assert_eq!((status, named.unwrap_or_default().as_str()), (400, param), "{body:.99}: {message}");
            assert!(message.contains(part), "{body:.99}: {message}");
        }
        let nothing =
            r#""temperature": null, "logit_bias": {}, "echo": false, "best_of": 1, "stop": null, "nonsense": 1, "none": null"#;
        let read = ChatRequest::parse(with(nothing).as_bytes(), None, 8).unwrap();
        assert_eq!(read.options, RequestOptions { n: 1, ..RequestOptions::default() });
        assert_eq!(read.ignored, ["nonsense"]);
    }

    #[test]
    fn a_prompt_has_four_forms() {
        let read = |prompt: &str| {
            TextRequest::parse(format!(r#"{{"prompt": {prompt}}}"#).as_bytes(), None, 3)
                .map(|request| request.prompts)
                .map_err(|refused| refused.message)
        };
        let text = |text: &str| CompletionPrompt::Text(text.to_owned());
        assert_eq!(read(r#""a""#), Ok(vec![text("a")]));
        assert_eq!(read(r#"["a", [1]]"#), Ok(vec![text("a"), CompletionPrompt::Ids(vec![1])]));
        assert_eq!(read("[1, 2]"), Ok(vec![CompletionPrompt::Ids(vec![1, 2])]));
        assert_eq!(read("[[1, 2], [3]]"), Ok(vec![CompletionPrompt::Ids(vec![1, 2]), CompletionPrompt::Ids(vec![3])]));
        for wrong in ["[]", "[1, \"a\"]", "[-1]", "[4294967296]", "[[]]", "{}", "null", r#"["a", "a", "a", "a"]"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_echoed_prompt_is_scored_with_the_response() {
        let read = |fields: &str| {
            let body = format!(r#"{{"prompt": "a", {fields}}}"#);
            TextRequest::parse(body.as_bytes(), None, 3).map(|request| request.options)
        };
        for (fields, prompt, sampled) in [
            (r#""echo": true, "logprobs": 1, "max_tokens": 0"#, Some(1), 1),
            (r#""echo": true, "logprobs": 0"#, Some(0), 0),
            (r#""echo": true"#, None, 0),
            (r#""logprobs": 3"#, None, 3),
            (r#""prompt_logprobs": 2, "echo": true, "logprobs": 1"#, Some(2), 1),
        ] {
            assert_eq!(read(fields).unwrap().scores(), WantedScores { prompt, sampled }, "{fields}");
        }
        for (fields, part) in [
            (r#""max_tokens": 0, "logprobs": 1"#, "from 1, not 0"),
            (r#""logprobs": 21"#, "from 0 to 20, not 21"),
            (r#""logprobs": true"#, "from 0 to 20, not true"),
            (r#""echo": 1"#, "true or false, not 1"),
        ] {
            let message = read(fields).unwrap_err().message;
            assert!(message.contains(part), "{fields}: {message}");
        }
        let most = read(r#""prompt_logprobs": 19, "logprobs": 4"#).unwrap();
        assert!(most.check_scores(20_000, 20_000).is_ok());
        for (prompt, sampled) in [(20_000, 20_001), (usize::MAX, usize::MAX)] {
            assert_eq!(most.check_scores(prompt, sampled).unwrap_err().param.as_deref(), Some("prompt_logprobs"));
        }
    }

    #[test]
    fn the_key_of_a_conversation_is_found() {
        let key = |header: Option<&str>, fields: &str| {
            let body = format!(r#"{{"prompt": "a"{fields}}}"#);
            TextRequest::parse(body.as_bytes(), header, 1).unwrap().conversation
        };
        let all = r#", "conversation": "b", "metadata": {"conversation": "c"}, "user": "d""#;
        assert_eq!(key(Some("a"), all).as_deref(), Some("a"));
        assert_eq!(key(None, all).as_deref(), Some("b"));
        assert_eq!(key(None, r#", "metadata": {"conversation": "c"}, "user": "d""#).as_deref(), Some("c"));
        assert_eq!(key(None, r#", "metadata": {"x": 1}, "user": "d""#), None, "a user has many conversations");
        assert_eq!(key(None, ""), None);
    }
}
