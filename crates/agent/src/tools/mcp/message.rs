//! JSON-RPC 2.0 messages, as the protocol uses them.

use serde_json::{Value, json};

use burnish_util::excerpt::beginning;

/// The limit of a message in bytes.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// The limit in bytes of an id that is sent back to a server.
const LONGEST_ID: usize = 1 << 10;

/// A message from a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The reply to the request with this id: a result, or the text of an error.
    Answer(u64, Result<Value, String>),
    /// A request from the server, with the server's id.
    Request { id: Value, method: String },
    /// A message without effect: a notification, or a reply without an id.
    Other,
}

/// Returns a request.
pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a notification.
pub(crate) fn notification(method: &str, params: Option<Value>) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    message
}

/// Returns the notification that a request is cancelled.
pub(super) fn cancelled(id: u64) -> Value {
    notification("notifications/cancelled", Some(json!({"requestId": id, "reason": "it took too long"})))
}

/// Returns the reply to a request of a server: `ping` is supported, nothing else. A long id is not sent back, nor a long method:
/// the server could otherwise fill the memory by requests whose replies it does not read.
pub(super) fn answer(id: &Value, method: &str) -> Value {
    let id = Some(id).filter(|id| id.is_number() || id.as_str().is_some_and(|id| id.len() <= LONGEST_ID));
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        other => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": format!("Method not found: {}", beginning(other))}})
        }
    }
}

/// Parses the bytes of a server: one message, or a list of messages (version 2025-03-26). `None` if they are neither.
pub fn incoming(bytes: &[u8]) -> Option<Vec<Incoming>> {
    match serde_json::from_slice(bytes).ok()? {
        Value::Array(messages) => messages.into_iter().map(one).collect(),
        message => Some(vec![one(message)?]),
    }
}

fn one(mut message: Value) -> Option<Incoming> {
    let fields = message.as_object_mut()?;
    let id = fields.get("id").filter(|id| !id.is_null()).cloned();
    if let Some(method) = fields.get("method") {
        let method = method.as_str()?.to_owned();
        return Some(id.map_or(Incoming::Other, |id| Incoming::Request { id, method }));
    }
    let answer = match (fields.remove("result"), fields.get("error")) {
        (Some(result), _) => Ok(result),
        (None, Some(error)) => Err(error_words(error)),
        (None, None) => return None,
    };
    // Servers return the ids that they received, some of them as text.
    let number = id.and_then(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()));
    Some(number.map_or(Incoming::Other, |number| Incoming::Answer(number, answer)))
}

fn error_words(error: &Value) -> String {
    let words = error["message"].as_str().filter(|words| !words.is_empty()).map(beginning);
    match (words, error["code"].as_i64()) {
        (Some(words), Some(code)) => format!("{words} ({code})"),
        (Some(words), None) => words,
        (None, _) => beginning(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| incoming(text.as_bytes());
        let one = |message| Some(vec![message]);
        assert_eq!(read(r#"{"id":3,"result":{"a":1}}"#), one(Incoming::Answer(3, Ok(json!({"a": 1})))));
        assert_eq!(
            read(r#"{"id":"3","error":{"code":-32602,"message":"no"}}"#),
            one(Incoming::Answer(3, Err("no (-32602)".into())))
        );
        assert_eq!(read(r#"{"id":null,"error":{"code":-32700}}"#), one(Incoming::Other));
        assert_eq!(read(r#"{"id":"a","method":"ping"}"#), one(Incoming::Request { id: json!("a"), method: "ping".into() }));
        assert_eq!(
            read(r#"[{"method":"x"},{"id":1,"result":null}]"#),
            Some(vec![Incoming::Other, Incoming::Answer(1, Ok(Value::Null))])
        );
        let reply = |id: &str, method: &str| answer(&json!(id), method).to_string();
        assert_eq!(answer(&json!(7), "ping"), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
        assert!(reply("a", "roots/list").contains("Method not found: roots/list"));
        let long = "x".repeat(1 << 20);
        assert!(reply(&long, "ping").len() < 100 && reply("a", &long).len() < 500, "what is long is not sent back");
        for garbage in ["", "Starting…", "3", "{}", r#"{"id":1}"#, r#"{"method":3}"#, "[3]", &"[".repeat(1000)] {
            assert_eq!(read(garbage), None, "{garbage}");
        }
    }
}
