//! `phi4_mini`: a JSON list after a word.

use serde_json::{Deserializer, Value};

use super::blocks::{json_calls, without_end};
use super::format::{CallFormat, ParsedTurn};

pub(crate) static PHI4_MINI: CallFormat = CallFormat {
    name: "phi4_mini",
    aliases: &["phi4_mini_json", "phi4"],
    doc: "Phi-4-mini: `functools[{\"name\": …, \"arguments\": {…}}]`, as vLLM reads it, or `<|tool_call|>[…]<|/tool_call|>`, as its \
          documentation asks for it. The content is the text around the list, which vLLM drops. Arguments may hold lists, at whose end vLLM \
          stops.",
    stop: &[],
    signs: &["<|/tool|>"],
    parse,
};

const MARKS: [&str; 2] = ["functools[", "<|tool_call|>["];

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let Some((at, mark)) = MARKS.iter().filter_map(|mark| Some((text.find(mark)?, mark))).min() else {
        return ParsedTurn::text(text, usize::from(text.contains("<|tool_call|>")));
    };
    let list = &text[at + mark.len() - 1..];
    let calls = first_value(list).and_then(|json| Some((json_calls(json, &["arguments", "parameters"])?, &list[json.len()..])));
    match calls {
        Some((calls, after)) if !calls.is_empty() => {
            let after = after.strip_prefix("<|/tool_call|>").unwrap_or(after);
            let content = format!("{}{}", &text[..at], without_end(after)).trim().to_owned();
            ParsedTurn { content, calls, ..ParsedTurn::default() }
        }
        _ => ParsedTurn::text(text, 1),
    }
}

/// Returns the JSON value with which a text starts.
fn first_value(text: &str) -> Option<&str> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok()?;
    Some(&text[..values.byte_offset()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_marks_and_lists_in_arguments_are_read() {
        let list = r#"[{"name": "f", "arguments": {"x": [1, {"y": []}], "t": "]"}}, {"name": "g", "arguments": {}}]"#;
        for text in [format!("functools{list}<|end|>"), format!("<|tool_call|>{list}<|/tool_call|><|end|>")] {
            let parsed = parse(&text, &[]);
            assert_eq!((parsed.content.as_str(), parsed.calls.len()), ("", 2), "{text}");
            assert_eq!(parsed.calls[0].arguments, r#"{"x": [1, {"y": []}], "t": "]"}"#);
        }
        let cut = &list[..list.len() - 1];
        assert_eq!(parse(&format!("functools{cut}"), &[]), ParsedTurn::text(format!("functools{cut}"), 1));
    }
}
