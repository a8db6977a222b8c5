//! `cohere`: a JSON list of actions between special tokens.

use serde_json::Value;

use super::blocks::{Blocks, call, without, without_ends};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_json::loads;
use burnish_util::python_object::Object;

pub(crate) static COHERE: CallFormat = CallFormat {
    name: "cohere",
    aliases: &["cohere2", "cohere_command3", "cohere_command4", "command_r7b"],
    doc: "Command R7B and later: `<|START_ACTION|>[{\"tool_call_id\": …, \"tool_name\": …, \"parameters\": {…}}]<|END_ACTION|>`, as Cohere's \
          own parser in vLLM reads it. The content is the response without its markers and without thinking. A cut list of actions is \
          unreadable; Cohere's parser returns a part of its arguments.",
    stop: &[],
    signs: &["<|START_ACTION|>"],
    parse,
};

const THINKING: [&str; 2] = ["<|START_THINKING|>", "<|END_THINKING|>"];
const MARKERS: &[&str] = &["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"];

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let shown = without_thinking(without_ends(text, &["<|END_OF_TURN_TOKEN|>"]));
    let actions = Blocks::find(&shown, "<|START_ACTION|>", "<|END_ACTION|>");
    let calls: Option<Vec<_>> = actions.inside.iter().map(|inside| read(inside)).collect();
    match calls.map(|calls| calls.concat()) {
        Some(calls) if !actions.unclosed && calls.is_empty() == actions.inside.is_empty() => {
            let content = without(&actions.outside, MARKERS).trim_end().to_owned();
            ParsedTurn { content, calls, ..ParsedTurn::default() }
        }
        _ => ParsedTurn::text(text, actions.inside.len().max(1)),
    }
}

/// Returns the text outside the thinking. The prompt may have opened it, and the token limit may have cut it.
fn without_thinking(text: &str) -> String {
    let [open, close] = THINKING;
    let opened = text.split_once(close).filter(|(before, _)| !before.contains(open));
    let mut outside = Blocks::find(opened.map_or(text, |(_, rest)| rest), open, close).outside;
    outside.truncate(outside.find(open).unwrap_or(outside.len()));
    outside
}

fn read(inside: &str) -> Option<Vec<ToolCall>> {
    let Object::List(actions) = loads(inside).ok()? else { return None };
    let read = |action: &Object| {
        let Object::Text(name) = action.get("tool_name")? else { return None };
        let id = match action.get("tool_call_id") {
            Some(Object::Text(id)) => Some(id.clone()),
            _ => None,
        };
        Some(ToolCall { id, ..call(name, action.get("parameters")?)? })
    };
    actions.iter().map(read).collect()
}
