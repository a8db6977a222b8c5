//! `glm`: the name of a function, then keys and values in tags.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{Blocks, arguments, call};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_text::{strip, strip_start};

pub(crate) static GLM: CallFormat = CallFormat {
    name: "glm",
    aliases: &["glm4", "glm45", "glm47", "glm4_moe", "glm4moe", "glm5"],
    doc: "GLM 4.5 and later: `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`. Values that are JSON are read \
          as JSON regardless of the schema: `42` is a number. An empty block is a call of a function without a name.",
    stop: &["<|observation|>"],
    signs: &["<tool_call>", "<arg_key>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    if !text.contains("</tool_call>") {
        return ParsedTurn::text(text, usize::from(text.contains("<tool_call>")));
    }
    let blocks = Blocks::find(text, "<tool_call>", "</tool_call>");
    if blocks.inside.is_empty() && !blocks.unclosed {
        return ParsedTurn::text(text, 0);
    }
    let content = without_thinking(blocks.before).to_owned();
    let unclosed = usize::from(blocks.unclosed);
    let mut parsed = ParsedTurn { content, calls: Vec::new(), unreadable: unclosed, ..ParsedTurn::default() };
    for inside in blocks.inside {
        match read(inside) {
            Some(call) => parsed.calls.push(call),
            None => parsed.unreadable += 1,
        }
    }
    parsed
}

fn read(inside: &str) -> Option<ToolCall> {
    static PAIR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>").expect("a constant pattern"));
    let first = inside.find("<arg_key>").unwrap_or(inside.len());
    let (name, pairs) = inside.split_at(first);
    let pairs = PAIR.captures_iter(pairs).map(|pair| pair.extract::<2>().1);
    call(strip(name), &arguments(pairs.map(|[key, value]| (key, value))))
}

/// Returns the text without leading thinking, including thinking that began in the prompt.
fn without_thinking(text: &str) -> &str {
    let closed = strip_start(text).strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    let text = closed.map_or(text, |(_, rest)| rest);
    strip_start(text).strip_prefix("</think>").unwrap_or(text)
}
