//! The content of a request, and the reasons for refusing it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// An error response: `{"error": …}`.
#[derive(Debug, PartialEq)]
pub struct Refusal(pub StatusCode, pub String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        reply(self.0, &json!({"error": self.1}))
    }
}

/// A JSON response.
pub fn reply(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], format!("{body}\n")).into_response()
}

/// Reads the texts of `{"query": [text, …]}`. `prompts` and `labels` are accepted, if there are as many as queries, and ignored.
///
/// # Errors
/// If a field is wrong, which the message names, or if there are more than `most` queries.
pub fn queries(body: &[u8], most: usize) -> Result<Vec<String>, Refusal> {
    let bad = |message: String| Refusal(StatusCode::BAD_REQUEST, message);
    let mut request: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| bad(format!("the body must be a JSON object: {error}")))?;
    let queries = match request.remove("query") {
        Some(Value::Array(queries)) => queries,
        Some(_) => return Err(bad("`query` must be a list of texts".to_owned())),
        None => return Err(bad("`query` is missing: a list of texts, each a prompt with its response".to_owned())),
    };
    let count = queries.len();
    if count > most {
        return Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, format!("`query` has {count} texts, --max-queries is {most}")));
    }
    for field in ["prompts", "labels"] {
        match request.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) if list.len() == count => {}
            Some(Value::Array(list)) => return Err(bad(format!("`{field}` has {} entries for {count} queries", list.len()))),
            Some(_) => return Err(bad(format!("`{field}` must be a list"))),
        }
    }
    let text = |(i, query)| match query {
        Value::String(text) => Ok(text),
        _ => Err(bad(format!("`query[{i}]` must be text"))),
    };
    queries.into_iter().enumerate().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_field_that_is_wrong() {
        for (body, status, part) in [
            ("{", 400, "must be a JSON object: EOF"),
            ("[]", 400, "must be a JSON object"),
            ("{}", 400, "`query` is missing"),
            (r#"{"query": "text"}"#, 400, "`query` must be a list"),
            (r#"{"query": ["a", 1]}"#, 400, "`query[1]` must be text"),
            (r#"{"query": ["a"], "prompts": "a"}"#, 400, "`prompts` must be a list"),
            (r#"{"query": ["a"], "labels": [1, 2]}"#, 400, "`labels` has 2 entries for 1 queries"),
            (r#"{"query": ["a", "a", "a"]}"#, 413, "`query` has 3 texts, --max-queries is 2"),
        ] {
            let Refusal(given, message) = queries(body.as_bytes(), 2).unwrap_err();
            assert!(given.as_u16() == status && message.contains(part), "{body}: {given} {message}");
        }
        let right = r#"{"query": ["a", "ü"], "prompts": null, "labels": [{"x": 1}, null], "further": 1}"#;
        assert_eq!(queries(right.as_bytes(), 2).unwrap(), ["a", "ü"]);
        assert_eq!(queries(br#"{"query": []}"#, 2).unwrap(), [""; 0]);
    }
}
