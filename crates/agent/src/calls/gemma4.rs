//! `gemma4`: calls with bare keys, and strings between special quote tokens.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{PADDINGS, call, without};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_number::{float_of, int_of};
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_text::strip;

pub(crate) static GEMMA4: CallFormat = CallFormat {
    name: "gemma4",
    aliases: &["gemma-4"],
    doc: "Gemma 4: `<|tool_call>call:NAME{key:<|\"|>text<|\"|>,other:3}<tool_call|>`. Objects and lists in arguments come out broken, as \
          with verl.",
    stop: &["<tool_call|>"],
    signs: &["<|tool_call>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static CALL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)<\|tool_call>call:(\w+)\{(.*?)\}<tool_call\|>").expect("a constant pattern"));
    let text = without(text, PADDINGS);
    let Some(first) = text.find("<|tool_call>") else { return ParsedTurn::text(text, 0) };
    let mut calls = Vec::new();
    for found in CALL.captures_iter(&text) {
        let [name, body] = found.extract().1;
        calls.extend(call(name, &arguments(body)));
    }
    let unreadable = text.matches("<|tool_call>").count().saturating_sub(calls.len());
    if calls.is_empty() {
        return ParsedTurn::text(text, unreadable);
    }
    ParsedTurn { content: text[..first].to_owned(), calls, unreadable, ..ParsedTurn::default() }
}

fn arguments(body: &str) -> Object {
    static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\w+):").expect("a constant pattern"));
    const QUOTE: &str = "<|\"|>";
    let mut fields = Fields::default();
    let mut at = 0;
    // A string has no line breaks. An unclosed quote is a bare value; `last_quote` avoids searching for its end again.
    let last_quote = body.rfind(QUOTE).unwrap_or_default();
    while let Some(found) = KEY.captures_at(body, at) {
        let start = found.get_match().end();
        let rest = &body[start..];
        let quoted = rest
            .strip_prefix(QUOTE)
            .filter(|_| start < last_quote)
            .and_then(|inside| inside.split_once(QUOTE))
            .filter(|(value, _)| !value.contains('\n'));
        let value = match quoted {
            Some((value, _)) => {
                at = start + value.len() + 2 * QUOTE.len();
                Object::Text(value.to_owned())
            }
            None => {
                let end = rest.find([',', '}']).unwrap_or(rest.len());
                at = start + end;
                bare(strip(&rest[..end]))
            }
        };
        fields.set_text(&found[1], value);
    }
    fields.dict()
}

fn bare(value: &str) -> Object {
    match value.to_ascii_lowercase().as_str() {
        "true" => Object::Bool(true),
        "false" => Object::Bool(false),
        "null" => Object::None,
        _ => int_of(value)
            .map(Object::Int)
            .or_else(|| float_of(value).map(Object::Float))
            .unwrap_or_else(|| Object::Text(value.to_owned())),
    }
}
