//! `olmo3`: calls in Python's syntax, one per line.

use serde_json::Value;

use super::blocks::{Blocks, without_end};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use super::lfm2::read;
use burnish_util::python_text::strip;

pub(crate) static OLMO3: CallFormat = CallFormat {
    name: "olmo3",
    aliases: &["olmo_3", "olmo"],
    doc: "OLMo 3: `<function_calls>NAME(key='value')</function_calls>`, one call per line, as vLLM reads it; without the tags, a turn that is \
          calls only. The content is the text outside the tags, which vLLM drops; names may have dots.",
    stop: &[],
    signs: &["<function_calls>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let blocks = Blocks::find(text, "<function_calls>", "</function_calls>");
    if blocks.unclosed {
        return ParsedTurn::text(text, 1);
    }
    if blocks.inside.is_empty() {
        let calls = lines(without_end(text)).unwrap_or_default();
        return ParsedTurn {
            content: if calls.is_empty() { text.to_owned() } else { String::new() },
            calls,
            ..ParsedTurn::default()
        };
    }
    match blocks.inside.iter().map(|inside| lines(inside)).collect::<Option<Vec<_>>>() {
        Some(calls) => ParsedTurn { content: strip(&blocks.outside).to_owned(), calls: calls.concat(), ..ParsedTurn::default() },
        None => ParsedTurn::text(text, 1),
    }
}

/// Reads one call from each line that is not empty.
fn lines(text: &str) -> Option<Vec<ToolCall>> {
    let lines: Vec<&str> = text.lines().map(strip).filter(|line| !line.is_empty()).collect();
    read(&format!("[{}]", lines.join(", ")))
}
