//! Calls of tools: every text is parsed as by verl's and vLLM's parsers and TRL's response templates.

use std::fs;
use std::path::Path;

use burnish::agent::calls::response::parse_response;
use burnish::agent::calls::{format_named, format_of_template, parse};
use serde_json::{Value, json};

use crate::cases::golden_file;

/// TRL's cases whose parser raises an error, by name. Here the message is empty, because an empty completion must not end a step.
const RAISE: &[&str] = &["empty_text"];

/// Texts that are read in another way than by vLLM, as the documentation of their formats says.
const UNLIKE_VLLM: &[(&str, &str)] = &[
    // Names have dots.
    ("olmo3", "api.f(x=null"),
    // Text around the calls is content.
    ("olmo3", "I look.\n<function_calls>"),
    ("phi4_mini", "I look. functools"),
    // A number without escapes is an argument.
    ("functiongemma", "{x:1}"),
];

/// The formats of published chat templates, by the beginning of their names; none for templates without calls.
const OF_TEMPLATES: &[(&str, Option<&str>)] = &[
    ("deepseek-v2", None),
    ("deepseek-", Some("deepseek_v3")),
    ("glm4.", Some("glm")),
    ("gpt-oss", Some("harmony")),
    ("granite3.3", Some("granite")),
    ("granite4.", Some("hermes")),
    ("ministral3", Some("mistral")),
    ("mistral-v1", None),
    ("mistral-v3", Some("mistral")),
    ("mistral-v7", Some("mistral")),
    ("olmo3", Some("olmo3")),
    ("phi4-mini", Some("phi4_mini")),
    ("phi", None),
    ("qwen2.5", Some("hermes")),
    ("qwen3.5", Some("qwen3_coder")),
    ("qwen3.6", Some("qwen3_coder")),
    ("qwen3-coder", Some("qwen3_coder")),
    ("qwen3", Some("hermes")),
    ("seed-oss", Some("seed")),
    ("smollm3", None),
];

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

#[test]
fn golden_tool_parsers_agree_with_vllm() {
    let goldens = golden_file("agents/tool_parsers_vllm.json");
    let mut wrong = Vec::new();
    for case in rows(&goldens["cases"]) {
        let (name, text) = (case["parser"].as_str().unwrap(), case["text"].as_str().unwrap());
        let name = name.split(' ').next().unwrap();
        let parsed = parse(format_named(name).unwrap(), text, &[], false);
        let calls: Vec<Value> = parsed.calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
        let same = json!(calls) == case["calls"] && json!(parsed.content) == case["content"];
        // vLLM runs calls that were cut; here they are unreadable.
        let is_cut = name == "functiongemma" && text.contains("call:") && !text.contains("<end_function_call>");
        let unlike = UNLIKE_VLLM.iter().any(|(format, part)| *format == name && text.contains(part));
        let expected = if is_cut { parsed.calls.is_empty() && parsed.unreadable == 1 } else { same != unlike };
        if !expected {
            wrong.push(format!("{name}\n  text  {text:?}\n  found {parsed:?}\n  vLLM  {} {}", case["content"], case["calls"]));
        }
    }
    assert!(!rows(&goldens["cases"]).is_empty() && wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

#[test]
fn the_format_of_a_published_template_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat-templates");
    let mut compared = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".jinja") || name.starts_with("own-") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let found = format_of_template(|sign| source.contains(sign)).map(|format| format.name);
        let expected = OF_TEMPLATES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, format)| *format);
        assert_eq!(Some(found), expected, "{name}");
        compared += 1;
    }
    assert!(compared > 20);
}
