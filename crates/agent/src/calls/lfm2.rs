//! `lfm2`: a list of calls in Python's syntax between special tokens.

use serde_json::Value;

use super::blocks::{call, without_ends};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_literal::calls;
use burnish_util::python_text::strip;

pub(crate) static LFM2: CallFormat = CallFormat {
    name: "lfm2",
    aliases: &["lfm2_5", "lfm2_moe"],
    doc: "LFM2 and LFM2.5: `<|tool_call_start|>[NAME(key='value'), …]<|tool_call_end|>` with text around it, as vLLM reads it, without vLLM's \
          repairs of invalid Python. Values are literals of Python. Only the first list is read; text up to a second `<|tool_call_end|>`, \
          in which models repeat their calls, is dropped.",
    stop: &[],
    signs: &["<|tool_call_start|>"],
    parse,
};

const OPEN: &str = "<|tool_call_start|>";
const CLOSE: &str = "<|tool_call_end|>";

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let Some((before, rest)) = without_ends(text, &["<|im_end|>", "<|endoftext|>"]).split_once(OPEN) else {
        return ParsedTurn::text(text, 0);
    };
    let (inside, after) = rest.split_once(CLOSE).unwrap_or((rest, ""));
    let Some(calls) = read(strip(inside)) else { return ParsedTurn::text(text, 1) };
    let after = after.rsplit_once(CLOSE).map_or(after, |(_, after)| after);
    let content = [strip(before), strip(after)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    ParsedTurn { content, calls, ..ParsedTurn::default() }
}

/// Reads a list of calls in brackets.
pub(super) fn read(list: &str) -> Option<Vec<ToolCall>> {
    let list = Some(list).filter(|list| list.starts_with('[') && list.ends_with(']'))?;
    calls(list)?.iter().map(|one| call(&one.name, &one.arguments)).collect()
}
