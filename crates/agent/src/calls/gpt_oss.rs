//! `gpt-oss`: the channels of OpenAI's harmony format.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{Blocks, PADDINGS, without};
use super::format::{CallFormat, ParsedTurn, ToolCall};

pub(crate) static GPT_OSS: CallFormat = CallFormat {
    name: "gpt-oss",
    aliases: &["gpt_oss"],
    doc: "gpt-oss as verl reads it: `<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`. \
          `harmony` reads calls in all positions. Analysis channels are removed first, and arguments are not checked. A call at the very \
          start of a turn is not recognized, because its opening is in the prompt. The order of the published template \
          (`assistant to=functions.NAME<|channel|>commentary json`) is not recognized either.",
    stop: &[],
    signs: &["<|start|>assistant", "<|channel|>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static CALL: LazyLock<Regex> = LazyLock::new(|| {
        let pattern =
            r"(?s)<\|start\|>assistant<\|channel\|>[^<]* to=functions\.([^<]+) <\|constrain\|>json<\|message\|>(.*?)<\|call\|>";
        Regex::new(pattern).expect("a constant pattern")
    });
    let text = without(&without(text, PADDINGS), &["<|endoftext|>"]);
    let text = Blocks::find(&text, "<|start|>assistant<|channel|>analysis<|message|>", "<|end|>").outside;
    let text = Blocks::find(&text, "<|channel|>analysis<|message|>", "<|end|>").outside;
    let calls = CALL.captures_iter(&text);
    let calls: Vec<_> =
        calls.map(|found| ToolCall { id: None, name: found[1].to_owned(), arguments: found[2].to_owned() }).collect();
    let content = if calls.is_empty() { text.clone() } else { CALL.replace_all(&text, "").into_owned() };
    let unreadable = content.matches("to=functions.").count();
    ParsedTurn { content, calls, unreadable, ..ParsedTurn::default() }
}
