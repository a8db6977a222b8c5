//! Parses a turn in a format, with or without the calls in its thinking.

use serde_json::Value;

use super::format::{CallFormat, ParsedTurn};
use super::thinking::{ignore_in_thinking as hide, may_think};

/// Parses a turn: its text with special tokens, and the schemas of the tools (OpenAI's form). With `ignore_in_thinking`, calls
/// inside `<think>…</think>`, `[THINK]…[/THINK]` or `<seed:think>…</seed:think>` are part of the thinking; without it, the format
/// parses them like any others, as in verl.
pub fn parse(format: &CallFormat, text: &str, tools: &[Value], ignore_in_thinking: bool) -> ParsedTurn {
    if !ignore_in_thinking || !may_think(text) {
        return (format.parse)(text, tools);
    }
    let hidden = hide(text);
    let mut parsed = (format.parse)(&hidden.text, tools);
    parsed.content = hidden.shown(&parsed.content);
    parsed.left_out.iter_mut().for_each(|text| *text = hidden.shown(text));
    for call in &mut parsed.calls {
        call.arguments = hidden.shown(&call.arguments);
        call.name = hidden.shown(&call.name);
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::super::formats::format_named;
    use super::*;

    #[test]
    fn drafts_of_calls_are_thinking() {
        let text = "<think>or <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call></think>No.";
        let hermes = format_named("hermes").unwrap();
        assert_eq!(parse(hermes, text, &[], false).calls.len(), 1);
        assert_eq!(parse(hermes, text, &[], true), ParsedTurn::text(text, 0));
        let text = format!("{text}<tool_call>{{\"name\": \"g\", \"arguments\": {{}}}}</tool_call>");
        assert_eq!(parse(hermes, &text, &[], true).calls[0].name, "g");
    }
}
