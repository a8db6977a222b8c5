//! `llama3_json`: JSON objects without markers.

use serde_json::Value;

use super::blocks::json_call;
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_json::loads;

pub(crate) static LLAMA3_JSON: CallFormat = CallFormat {
    name: "llama3_json",
    aliases: &["llama3", "llama4_json", "llama3_1", "llama3_2"],
    doc: "Llama 3.1 and later: `{\"name\": …, \"parameters\": {…}}`, several with `;` between them, as vLLM reads it. The turn has no other \
          content. If one of them cannot be read, all of it is text. Braces may nest deeper than vLLM's two levels, and `;` may occur in text.",
    stop: &[],
    signs: &["{\"name\": function name, \"parameters\""],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let tag = text.contains("<|python_tag|>");
    let Some(start) = text.find('{') else { return ParsedTurn::text(text, usize::from(tag)) };
    let mut calls = Vec::new();
    let mut rest = &text[start..];
    loop {
        let Some(call) = object(rest).and_then(|end| read(&rest[..end]).map(|call| (call, end))) else {
            // Prose may contain braces too: only text that names a function looks like a call.
            return ParsedTurn::text(text, usize::from(tag || rest.contains("\"name\"")));
        };
        let (call, end) = call;
        calls.push(call);
        let behind = rest[end..].trim_start();
        match behind.strip_prefix(';').map(str::trim_start) {
            Some(next) if next.starts_with('{') => rest = next,
            _ => return ParsedTurn { content: String::new(), calls, unreadable: 0, ..ParsedTurn::default() },
        }
    }
}

fn read(json: &str) -> Option<ToolCall> {
    json_call(&loads(json).ok()?, &["arguments", "parameters"])
}

/// Returns the length of the object with which a text starts.
pub(super) fn object(text: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' if !in_text => depth += 1,
            b'}' if !in_text => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
