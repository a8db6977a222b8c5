//! `granite`: a JSON list after a special token.

use serde_json::Value;

use super::blocks::{json_calls, without_end};
use super::format::{CallFormat, ParsedTurn};

pub(crate) static GRANITE: CallFormat = CallFormat {
    name: "granite",
    aliases: &["granite3", "granite-3"],
    doc: "Granite 3: the turn is `<|tool_call|>[{\"name\": …, \"arguments\": {…}}]`, with or without the token, as vLLM reads it. Anything \
          else is text.",
    stop: &[],
    signs: &["<|tool_call|>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let trimmed = text.trim();
    let marked = ["<|tool_call|>", "<tool_call>"].iter().find_map(|token| trimmed.strip_prefix(token));
    let inside = without_end(marked.unwrap_or(trimmed));
    if !inside.starts_with('[') {
        return ParsedTurn::text(text, usize::from(marked.is_some()));
    }
    match json_calls(inside, &["arguments"]) {
        Some(calls) => ParsedTurn { content: String::new(), calls, unreadable: 0, ..ParsedTurn::default() },
        None => ParsedTurn::text(text, usize::from(marked.is_some() || inside.starts_with("[{"))),
    }
}
