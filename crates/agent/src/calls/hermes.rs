//! `hermes`: JSON between `<tool_call>` and `</tool_call>`.

use serde_json::Value;

use super::blocks::{Blocks, json_call};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_json::loads;

pub(crate) static HERMES: CallFormat = CallFormat {
    name: "hermes",
    aliases: &["qwen", "qwen2", "qwen2_5", "qwen25", "qwen3", "granite4", "smollm3", "exaone4", "arcee"],
    doc: "Hermes 2 and 3, Qwen 2.5 and 3, Granite 4, SmolLM3, EXAONE 4, AFM: `<tool_call>{\"name\": …, \"arguments\": {…}}</tool_call>`. A \
          call that cannot be read is dropped from the content too.",
    stop: &[],
    signs: &["<tool_call>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let blocks = Blocks::find(text, "<tool_call>", "</tool_call>");
    let mut parsed = ParsedTurn::text(blocks.outside, usize::from(blocks.unclosed));
    for inside in blocks.inside {
        match loads(inside).ok().and_then(|value| json_call(&value, &["arguments"])) {
            Some(call) => parsed.calls.push(call),
            None => {
                parsed.unreadable += 1;
                parsed.left_out.push(format!("<tool_call>{inside}</tool_call>"));
            }
        }
    }
    parsed
}
