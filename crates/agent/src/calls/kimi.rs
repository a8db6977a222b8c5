//! `kimi`: a section of calls between special tokens, with ids from which the names are derived.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::format::{CallFormat, ParsedTurn, ToolCall};
use super::schema::{functions, names};
use burnish_util::python_json::loads;
use burnish_util::python_object::Object;
use burnish_util::python_text::strip;

pub(crate) static KIMI: CallFormat = CallFormat {
    name: "kimi",
    aliases: &["kimi_k2", "kimi-k2"],
    doc: "Kimi K2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`. The \
          name is the tool of that name, else the only tool whose name the id contains, else the only one whose required arguments are all \
          given, else the id. Arguments that are not a JSON object become empty.",
    stop: &["<|im_end|>"],
    signs: &["<|tool_calls_section_begin|>"],
    parse,
};

fn parse(text: &str, tools: &[Value]) -> ParsedTurn {
    static CALL: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"(?s)<\|tool_call_begin\|>(.*?)<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>";
        Regex::new(pattern).expect("a constant pattern")
    });
    let Some(section) = text.find("<|tool_calls_section_begin|>") else { return ParsedTurn::text(text, 0) };
    let mut parsed = ParsedTurn::text(&text[..section], 0);
    let mut end = 0;
    for found in CALL.captures_iter(text) {
        let [id, arguments] = found.extract().1;
        end = found.get_match().end();
        let id = strip(id);
        let arguments = match loads(strip(arguments)) {
            Ok(arguments @ Object::Dict(_)) => arguments,
            _ => Object::Dict(Vec::new()),
        };
        // Half of a surrogate pair, which verl keeps and Rust strings cannot hold.
        let Some(json) = arguments.to_json() else {
            parsed.unreadable += 1;
            continue;
        };
        let name = name(id, &arguments, tools).to_owned();
        parsed.calls.push(ToolCall { id: Some(id.to_owned()), name, arguments: json });
    }
    let cut_off = text[end..].contains("<|tool_call_begin|>");
    parsed.unreadable += usize::from(cut_off || (parsed.calls.is_empty() && parsed.unreadable == 0));
    parsed
}

fn name<'a>(id: &'a str, arguments: &Object, tools: &'a [Value]) -> &'a str {
    fn only<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        names.next().filter(|_| names.next().is_none())
    }
    if names(tools).any(|name| name == id) {
        return id;
    }
    let id_like = id.to_lowercase().replace('-', "_");
    let all_there = |function: &&Value| {
        let required = function["parameters"]["required"].as_array().map_or(&[][..], Vec::as_slice);
        !required.is_empty() && required.iter().all(|key| key.as_str().is_some_and(|key| arguments.get(key).is_some()))
    };
    only(names(tools).filter(|name| id_like.contains(&name.to_lowercase())))
        .or_else(|| only(functions(tools).filter(all_there).filter_map(|function| function["name"].as_str())))
        .unwrap_or(id)
}
