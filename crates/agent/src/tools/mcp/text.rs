//! Conversion of a server's results to text, and of its tools to schemas.

use serde_json::{Map, Value, json};

use std::sync::LazyLock;

use regex::Regex;

use burnish_util::excerpt::{beginning, beginning_of};

/// The limit in characters of an error text that the model is shown.
const LONGEST_ERROR: usize = 8000;

/// A function that converts a result to text, like one of verl's classes.
pub(crate) type ResultFormat = fn(&Value) -> String;

/// Returns the schema of a tool in OpenAI's form, like verl: the server's `inputSchema` unchanged, with a list of required
/// arguments even if that is empty. `None` if the tool has no name. A missing description becomes empty, because chat templates
/// expect one.
pub(super) fn schema(tool: &Value) -> Option<Value> {
    let name = tool["name"].as_str().filter(|name| !name.is_empty())?;
    let mut parameters = match &tool["inputSchema"] {
        Value::Object(parameters) => parameters.clone(),
        _ => Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), json!({}))]),
    };
    if parameters.get("required").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        parameters.insert("required".to_owned(), json!([]));
    }
    let description = tool["description"].as_str().unwrap_or_default();
    let function = json!({"name": name, "description": description, "parameters": parameters, "strict": false});
    Some(json!({"type": "function", "function": function}))
}

/// Joins the parts of a result with spaces, like verl's `MCPBaseTool`. verl leaves out parts other than text; here a note
/// replaces them. For a result without parts, returns its structured content.
pub(super) fn joined(answer: &Value) -> String {
    let parts: Vec<String> = answer["content"].as_array().into_iter().flatten().map(part).collect();
    match &answer["structuredContent"] {
        structured @ (Value::Object(_) | Value::Array(_)) if parts.is_empty() => structured.to_string(),
        _ => parts.join(" "),
    }
}

/// Returns the lists named `results` in the texts of a result, like verl's `MCPSearchTool`.
pub(super) fn results(answer: &Value) -> String {
    static RESULTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?s)"results"\s*:\s*(\[.*?\])"#).ok());
    let texts = answer["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "text");
    let texts = texts.filter_map(|part| part["text"].as_str()).map(|text| text.replace('\'', "\""));
    texts.filter_map(|text| Some(RESULTS.as_ref()?.captures(&text)?.get(1)?.as_str().to_owned())).collect()
}

/// Returns the text of an error result, cut to the same length as Python errors.
pub(super) fn error(answer: &Value) -> String {
    let text = joined(answer);
    match text.is_empty() {
        true => "the server says that it failed, and not why".to_owned(),
        false => beginning_of(&text, LONGEST_ERROR),
    }
}

fn part(part: &Value) -> String {
    let kind = part["type"].as_str().unwrap_or("unknown content");
    let size = || part["data"].as_str().map_or(0, |data| data.len() / 4 * 3);
    let of = |value: &Value, name: &str| value[name].as_str().map(|text| format!(" {}", beginning(text))).unwrap_or_default();
    match kind {
        "text" => part["text"].as_str().unwrap_or_default().to_owned(),
        "resource" => match part["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[resource{}{}, not shown]", of(&part["resource"], "uri"), of(&part["resource"], "mimeType")),
        },
        "resource_link" => format!("[resource{}{}]", of(part, "uri"), of(part, "name")),
        kind => format!("[{}{}, {} bytes, not shown]", beginning(kind), of(part, "mimeType"), size()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_texts() {
        let answer = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///y", "mimeType": "a/b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///z", "name": "z"},
            {"type": "text", "text": "b\n"}], "structuredContent": {"x": 1}});
        let expected =
            "a [image image/png, 3 bytes, not shown] inside [resource file:///y a/b, not shown] [resource file:///z z] b\n";
        assert_eq!(joined(&answer), expected);
        assert_eq!(joined(&json!({"content": [], "structuredContent": {"x": 1}})), r#"{"x":1}"#);
        assert_eq!((joined(&json!(3)), error(&json!({})).is_empty()), (String::new(), false));
        assert_eq!(error(&json!({"content": [{"type": "text", "text": "é".repeat(9000)}]})).chars().count(), 8000 + 19);
    }

    #[test]
    fn verls_search_takes_lists_of_results() {
        let texts = ["{'query': 'q', 'results': [{'title': 'A'}], 'x': []}", "none", "\"results\" : [1,\n2]"];
        let content: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        assert_eq!(results(&json!({ "content": content })), "[{\"title\": \"A\"}][1,\n2]");
    }

    #[test]
    fn schemas_are_the_servers() {
        let input = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "title": "T"});
        let schema = schema(&json!({"name": "f", "inputSchema": input})).unwrap();
        let parameters = json!({"type": "object", "properties": input["properties"], "title": "T", "required": []});
        let function = json!({"name": "f", "description": "", "parameters": parameters, "strict": false});
        assert_eq!(schema, json!({"type": "function", "function": function}));
        assert_eq!(super::schema(&json!({"description": "no name"})), None);
    }
}
