//! Calls of tools: every text is parsed as by verl's parsers and TRL's response templates.

use burnish::agent::calls::response::parse_response;
use burnish::agent::calls::{format_named, parse};
use serde_json::{Value, json};

use crate::cases::golden_file;

/// TRL's cases whose parser raises an error, by name. Here the message is empty, because an empty completion must not end a step.
const RAISE: &[&str] = &["empty_text"];

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn golden_tool_parsers_agree_with_verl() {
    let goldens = golden_file("agents/tool_parsers_verl.json");
    let tools = rows(&goldens["tools"]);
    let mut wrong = Vec::new();
    for case in rows(&goldens["cases"]) {
        let (name, text) = (case["parser"].as_str().unwrap(), case["text"].as_str().unwrap());
        let parsed = parse(format_named(name).unwrap(), text, tools, false);
        let calls = parsed.calls.iter().map(|call| {
            let mut json = json!({"name": call.name, "arguments": call.arguments});
            if let Some(id) = &call.id {
                json["tool_call_id"] = json!(id);
            }
            json
        });
        let found = json!({"content": parsed.content, "calls": calls.collect::<Vec<_>>()});
        if found["content"] != case["content"] || found["calls"] != case["calls"] {
            wrong.push(format!(
                "{name} {}\n  text  {text:?}\n  found {found}\n  verl  {} {}",
                case["case"], case["content"], case["calls"]
            ));
        }
    }
    assert!(!rows(&goldens["cases"]).is_empty() && wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

#[test]
fn golden_responses_agree_with_trl() {
    let goldens = golden_file("agents/response_parsing_trl.json");
    let tools = rows(&goldens["tools"]);
    let mut wrong = Vec::new();
    for case in rows(&goldens["cases"]) {
        let text = |key: &str| case[key].as_str().unwrap();
        let found = parse_response(text("template"), text("prefix"), text("text"), tools).unwrap();
        let expected = match &case["message"] {
            Value::Null if RAISE.contains(&text("case")) => json!({"role": "assistant", "content": ""}),
            message => message.clone(),
        };
        if found != expected {
            wrong.push(format!(
                "{} {}\n  text  {:?}\n  found {found}\n  TRL   {expected}",
                case["template"], case["case"], case["text"]
            ));
        }
    }
    assert!(!rows(&goldens["cases"]).is_empty() && wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}
