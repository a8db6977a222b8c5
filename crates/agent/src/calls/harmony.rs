//! `harmony`: the messages of gpt-oss, as vLLM reads them.

use serde_json::Value;

use super::blocks::{PADDINGS, without};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_json::loads;

pub(crate) static HARMONY: CallFormat = CallFormat {
    name: "harmony",
    aliases: &["openai"],
    doc: "gpt-oss as vLLM reads it: `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`, with the recipient \
          also before the channel, as in the published template. The content is the final channel, or else the last commentary. A call without \
          `<|call|>` is unreadable. JSON arguments are written in Python's form; other arguments are the model's text.",
    stop: &["<|call|>", "<|return|>"],
    signs: &["<|start|>assistant", "<|channel|>", "<|call|>", "functions."],
    parse,
};

/// A message of the assistant.
struct HarmonyMessage<'a> {
    /// The text between `<|start|>assistant` and `<|message|>`.
    header: &'a str,
    text: &'a str,
    /// True if the message has its end token.
    ends: bool,
}

const ENDS: &[&str] = &["<|end|>", "<|call|>", "<|return|>"];

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let clean = without(text, PADDINGS);
    let (mut calls, mut unreadable, mut last, mut comment) = (Vec::new(), 0, None, None);
    for message in messages(&clean) {
        let (channel, kind) = channel(message.header);
        match recipient(message.header).map(|name| name.split_once("functions.").map_or("", |(_, name)| name)) {
            Some(name) if !name.is_empty() && message.ends => calls.push(tool_call(name, kind, message.text)),
            Some(_) => unreadable += 1,
            None if channel == "final" => last = Some(message.text),
            None if channel == "commentary" => comment = Some(message.text),
            None => {}
        }
    }
    let content = last.filter(|text| !text.is_empty()).or(comment).unwrap_or_default().to_owned();
    ParsedTurn { content, calls, unreadable, ..ParsedTurn::default() }
}

/// Splits a turn at its messages. The prompt has `<|start|>assistant` of the first.
fn messages(turn: &str) -> impl Iterator<Item = HarmonyMessage<'_>> {
    turn.split("<|start|>").filter_map(|piece| {
        let (header, rest) = piece.split_once("<|message|>")?;
        let end = ENDS.iter().filter_map(|token| rest.find(token)).min();
        Some(HarmonyMessage { header, text: &rest[..end.unwrap_or(rest.len())], ends: end.is_some() })
    })
}

/// Returns the recipient in a header.
fn recipient(header: &str) -> Option<&str> {
    let name = header.split_once("to=")?.1;
    Some(&name[..name.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(name.len())])
}

/// Returns the channel in a header, and the type of the content.
fn channel(header: &str) -> (&str, &str) {
    let Some((_, rest)) = header.split_once("<|channel|>") else { return ("", "") };
    let (channel, kind) = rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(rest.len()));
    let kind = match kind.split_once("<|constrain|>") {
        Some((_, kind)) => kind,
        None => kind.split_whitespace().find(|word| !word.starts_with("to=")).unwrap_or_default(),
    };
    (channel, kind.trim())
}

fn tool_call(name: &str, kind: &str, text: &str) -> ToolCall {
    let json = (kind.is_empty() || kind.contains("json")).then(|| loads(text).ok()?.to_json()).flatten();
    ToolCall { id: None, name: name.to_owned(), arguments: json.unwrap_or_else(|| text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of vLLM's own tests and of the published template.
    #[test]
    fn turns_are_vllms() {
        let think = "<|channel|>analysis<|message|>I look.<|end|>";
        let call = |header: &str, text: &str, end: &str| format!("{think}<|start|>assistant{header}<|message|>{text}{end}");
        let read = |text: &str| {
            let parsed = parse(text, &[]);
            let calls: Vec<String> = parsed.calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
            (calls.join(" "), parsed.content, parsed.unreadable)
        };
        let found = |calls: &str, content: &str, unreadable: usize| (calls.to_owned(), content.to_owned(), unreadable);
        for header in [
            "<|channel|>commentary to=functions.f <|constrain|>json",
            "<|channel|>commentary to=functions.f",
            " to=functions.f<|channel|>commentary json",
            " to=functions.f<|channel|>commentary <|constrain|>json",
            "<|channel|>analysis to=functions.f <|constrain|>json",
        ] {
            assert_eq!(read(&call(header, "{\"x\":1}\n", "<|call|>")), found("f{\"x\": 1}", "", 0), "{header}");
            assert_eq!(read(&call(header, "{\"x\"", "")), found("", "", 1), "{header}");
            assert_eq!(read(&call(header, "{\"x\"", "<|call|>")), found("f{\"x\"", "", 0), "{header}");
        }
        let first = "<|channel|>commentary to=functions.a.b <|constrain|>json<|message|>{}<|call|>";
        assert_eq!(read(first), found("a.b{}", "", 0));
        let code = call("<|channel|>commentary to=functions.f <|constrain|>code", "{\"x\":1}", "<|call|>");
        assert_eq!(read(&code), found("f{\"x\":1}", "", 0));
        let comment = "<|channel|>commentary<|message|>Now.<|end|><|start|>assistant<|channel|>commentary to=functions.f";
        assert_eq!(read(&format!("{comment} <|constrain|>json<|message|>{{}}<|call|>")), found("f{}", "Now.", 0));
        let last = call("<|channel|>final", "It is 12.", "<|return|>");
        assert_eq!(read(&last), found("", "It is 12.", 0));
        assert_eq!(read(&last[..last.len() - 12]), found("", "It is 1", 0));
        assert_eq!(read(&call("<|channel|>commentary to=browser.search", "{}", "<|call|>")), found("", "", 1));
        assert_eq!(read(think), found("", "", 0));
        assert_eq!(read(""), found("", "", 0));
    }
}
