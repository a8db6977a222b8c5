//! A language model behind OpenAI's protocol: replies, streams, conversations, errors.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::trainer;

const MODEL: &str = "data/arithmetic/model";

pub(crate) struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::of(MODEL, options)
    }

    pub(crate) fn of(model: &str, options: &[&str]) -> Self {
        Self::started(model, options, Stdio::inherit())
    }

    /// Starts a server whose standard error goes to `log`.
    pub(crate) fn started(model: &str, options: &[&str], log: Stdio) -> Self {
        let command = [&["serve", "--model", model, "--port", "0"], options].concat();
        let mut child = trainer(&command).env("SERVE_TOKEN", "s3cret").stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix(&format!("{model} is served at ")).expect(&line);
        Self { child, address: address.to_owned() }
    }

    pub(crate) fn ask(&self, path: &str, body: &Value, token: &str) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let request = agent.post(format!("{}{path}", self.address)).header("authorization", token);
        let mut response = request.send(body.to_string()).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    pub(crate) fn json(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.ask(path, body, "Bearer s3cret");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn a_conversation_is_kept_token_by_token() {
    let server = Server::start(&["--max-model-len", "64", "--token-env", "SERVE_TOKEN"]);
    let ask =
        json!({"prompt": "1+2=", "max_tokens": 4, "seed": 7, "logprobs": 0, "return_token_ids": true, "conversation": "a b"});
    let first = server.json("/completions", &ask);
    let choice = &first["choices"][0];
    let ids = choice["token_ids"].as_array().unwrap();
    assert_eq!(choice["logprobs"]["token_logprobs"].as_array().unwrap().len(), ids.len());
    // A request gets the same tokens alone, among others, and streamed.
    let again = server
        .json("/completions", &json!({"prompt": ["1+2=", "3+4="], "n": 2, "max_tokens": 4, "seed": 7, "return_token_ids": true}));
    assert_eq!(again["choices"][0]["token_ids"], choice["token_ids"]);
    assert_eq!(again["choices"].as_array().unwrap().len(), 4);
    let (_, events) =
        server.ask("/completions", &json!({"prompt": "1+2=", "max_tokens": 4, "seed": 7, "stream": true}), "Bearer s3cret");
    let chunks =
        events.split_terminator("\n\n").filter_map(|event| serde_json::from_str::<Value>(event.strip_prefix("data: ")?).ok());
    let text: String = chunks.filter_map(|chunk| chunk["choices"][0]["text"].as_str().map(str::to_owned)).collect();
    assert_eq!(text, choice["text"].as_str().unwrap());
    assert!(events.ends_with("data: [DONE]\n\n"));
    // A prompt that is sampled tokens and more text continues their sequence.
    let prompt: Vec<Value> =
        choice["prompt_token_ids"].as_array().unwrap().iter().chain(ids).cloned().chain([ids[0].clone()]).collect();
    let second =
        server.json("/completions", &json!({"prompt": prompt, "max_tokens": 2, "return_token_ids": true, "conversation": "a b"}));
    let url = format!("{}/conversations/a%20b", server.address);
    let mut served = ureq::get(&url).header("authorization", "Bearer s3cret").call().unwrap();
    let served: Value = serde_json::from_str(&served.body_mut().read_to_string().unwrap()).unwrap();
    let [one] = &served["trajectories"].as_array().unwrap()[..] else { panic!("{served}") };
    let turn = second["choices"][0]["token_ids"].as_array().unwrap();
    let expected: Vec<Value> = ids.iter().chain([&ids[0]]).chain(turn).cloned().collect();
    assert_eq!(one["ids"], Value::from(expected));
    let sampled: Vec<bool> = ids.iter().map(|_| true).chain([false]).chain(turn.iter().map(|_| true)).collect();
    assert_eq!(one["sampled"], Value::from(sampled));
}

#[test]
fn refusals_have_openais_form() {
    let server = Server::start(&["--max-model-len", "64", "--token-env", "SERVE_TOKEN"]);
    let chat = |field: &str, value: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "1+1="}]});
        body[field] = value;
        body
    };
    for (path, body, token, status, code) in [
        ("/chat/completions", chat("n", json!(1)), "Bearer wrong", 401, Value::Null),
        ("/chat/completions", chat("model", json!("gpt")), "Bearer s3cret", 404, json!("model_not_found")),
        ("/chat/completions", chat("max_tokens", json!(1000)), "Bearer s3cret", 400, json!("context_length_exceeded")),
        ("/chat/completions", chat("messages", json!([])), "Bearer s3cret", 400, Value::Null),
        ("/embeddings", json!({}), "Bearer s3cret", 404, Value::Null),
    ] {
        let (given, text) = server.ask(path, &body, token);
        let answer: Value = serde_json::from_str(&text).expect(&text);
        assert_eq!((given, &answer["error"]["code"]), (status, &code), "{path} {body}: {text}");
        assert!(answer["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
}
