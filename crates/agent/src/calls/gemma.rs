//! `gemma`: a fence of Python code.

use serde_json::Value;

use super::blocks::{Blocks, call};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_literal::calls;

pub(crate) static GEMMA: CallFormat = CallFormat {
    name: "gemma",
    aliases: &["gemma2", "gemma3", "tool_code"],
    doc: "Gemma 2 and 3, as their documentation asks for it: calls in a fence of `tool_code`, one to a line or in a list, each alone or inside \
          `print(…)`. The content is the text outside the fences.",
    stop: &[],
    signs: &["tool_code"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let blocks = Blocks::find(text, "```tool_code\n", "```");
    let mut parsed = ParsedTurn::text(blocks.outside, usize::from(blocks.unclosed));
    for inside in blocks.inside {
        let found =
            calls(inside).and_then(|calls| calls.iter().map(|one| call(&one.name, &one.arguments)).collect::<Option<Vec<_>>>());
        match found {
            Some(calls) => parsed.calls.extend(calls),
            None => parsed.unreadable += 1,
        }
    }
    parsed
}
