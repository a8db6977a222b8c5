//! `call_tag`: JSON between `<call>` and `</call>`.

use serde_json::Value;

use super::blocks::{Blocks, json_calls};
use super::format::{CallFormat, ParsedTurn};

pub(super) static CALL_TAG: CallFormat = CallFormat {
    name: "call_tag",
    aliases: &["example-1b"],
    doc: "Example-1B: `<call>{\"name\": …, \"arguments\": {…}}</call>`, after any text.",
    stop: &["</call>"],
    signs: &["<call>", "</call>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    Blocks::find(text, "<call>", "</call>").calls(text, |inside| json_calls(inside, &["arguments"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_and_a_broken_one_is_counted() {
        let parsed = parse(r#"Adding.<call>{"name": "add", "arguments": {"a": 1}}</call>"#, &[]);
        assert_eq!((&*parsed.content, &*parsed.calls[0].name, &*parsed.calls[0].arguments), ("Adding.", "add", r#"{"a": 1}"#));
        assert_eq!((parse("<call>{</call>", &[]).unreadable, CALL_TAG.signs.len()), (1, 2));
    }
}
