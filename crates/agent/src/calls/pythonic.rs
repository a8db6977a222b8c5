//! `pythonic`: a list of calls in Python's syntax.

use serde_json::Value;

use super::blocks::{call, without_end};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_literal::calls;

pub(crate) static PYTHONIC: CallFormat = CallFormat {
    name: "pythonic",
    aliases: &["llama4_pythonic", "llama4"],
    doc: "Llama 4, ToolACE: the turn is a list of calls with keyword arguments, `[NAME(key='value'), …]`, as vLLM reads it. Values are \
          literals of Python. Anything else is text.",
    stop: &[],
    signs: &["<|python_start|>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let mut inside = without_end(text);
    for (open, close) in [("<|python_start|>", "<|python_end|>"), ("<|tool_call_start|>", "<|tool_call_end|>")] {
        let open = inside.strip_prefix(open);
        inside = open.map_or(inside, |inside| inside.strip_suffix(close).unwrap_or(inside).trim());
    }
    if !(inside.starts_with('[') && inside.contains('(')) {
        return ParsedTurn::text(text, 0);
    }
    let found = calls(inside).and_then(|calls| calls.iter().map(|one| call(&one.name, &one.arguments)).collect());
    found.map_or_else(
        || ParsedTurn::text(text, 1),
        |calls| ParsedTurn { content: String::new(), calls, unreadable: 0, ..ParsedTurn::default() },
    )
}
