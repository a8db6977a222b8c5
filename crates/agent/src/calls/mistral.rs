//! `mistral`: a special token before the calls: a JSON list, or a name and an object per call.

use serde_json::Value;

use super::blocks::{call, json_calls, without_end};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_json::loads;

pub(crate) static MISTRAL: CallFormat = CallFormat {
    name: "mistral",
    aliases: &["mixtral", "magistral", "ministral", "devstral"],
    doc: "Mistral: `[TOOL_CALLS][{\"name\": …, \"arguments\": {…}}]`, and since its tokenizer of version 11 `[TOOL_CALLS]NAME{…}` for each \
          call. If one cannot be read, the whole turn is text, without the token. Calls have no ids: vLLM makes random ones.",
    stop: &[],
    signs: &["[TOOL_CALLS]"],
    parse,
};

const TOKEN: &str = "[TOOL_CALLS]";

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let Some((content, behind)) = text.split_once(TOKEN) else { return ParsedTurn::text(text, 0) };
    let behind = without_end(behind);
    let calls = if behind.starts_with(['[', '{']) { listed(behind) } else { behind.split(TOKEN).map(named).collect() };
    match calls {
        Some(calls) => ParsedTurn { content: content.to_owned(), calls, unreadable: 0, ..ParsedTurn::default() },
        None => ParsedTurn::text(text.replace(TOKEN, ""), 1),
    }
}

fn listed(text: &str) -> Option<Vec<ToolCall>> {
    let keys = &["arguments"];
    json_calls(text, keys).or_else(|| json_calls(&text[text.find("[{")?..=text.rfind("}]")? + 1], keys))
}

/// Parses a name and its object; newer tokenizers put `[CALL_ID]…[ARGS]` between them.
fn named(text: &str) -> Option<ToolCall> {
    let text = text.trim();
    let (head, arguments) = text.split_at(text.find('{')?);
    let head = head.trim().trim_end_matches("[ARGS]");
    let (name, id) = head.split_once("[CALL_ID]").map_or((head, None), |(name, id)| (name, Some(id)));
    let well = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let arguments = loads(arguments.trim_end_matches([',', ' '])).ok()?;
    let call = call(name, &arguments)?;
    (!name.is_empty() && name.chars().all(well)).then(|| ToolCall { id: id.map(str::to_owned), ..call })
}
