//! `qwen3_coder`: XML-like functions and parameters, with values typed by the tool's schema.

use serde_json::Value;

use super::blocks::call;
use super::format::{CallFormat, ParsedTurn, ToolCall};
use super::schema::parameter;
use burnish_util::python_json::loads;
use burnish_util::python_literal::literal_eval;
use burnish_util::python_number::{float_of, int_of, integral_digits};
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_value::text_of;

pub(crate) static QWEN3_CODER: CallFormat = CallFormat {
    name: "qwen3_coder",
    aliases: &["qwen3_xml", "qwen3_5", "qwen35"],
    doc: "Qwen3-Coder, Qwen 3.5: `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`. An unclosed tag \
          extends to the end. The text after the first call is lost; one value that JSON cannot hold makes the whole turn text.",
    stop: &[],
    signs: &["<tool_call>", "<function="],
    parse,
};

fn parse(text: &str, tools: &[Value]) -> ParsedTurn {
    let Some(first) = text.find("<tool_call>") else { return ParsedTurn::text(text, 0) };
    let mut parsed = ParsedTurn::text(&text[..first], 0);
    let mut found = false;
    for block in pieces(text, "<tool_call>", "</tool_call>", true) {
        for function in pieces(block, "<function=", "</function>", false) {
            found = true;
            match read(function, tools) {
                Ok(Some(call)) => parsed.calls.push(call),
                Ok(None) => parsed.unreadable += 1,
                Err(()) => return ParsedTurn::text(text, 1),
            }
        }
    }
    if found { parsed } else { ParsedTurn::text(text, 1) }
}

/// Returns the text after each opening marker, up to the closing one or to the end of the text. With `cut`, a final newline at
/// the end of the text is removed.
fn pieces<'a>(text: &'a str, open: &'a str, close: &'a str, cut: bool) -> impl Iterator<Item = &'a str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inside = &rest[rest.find(open)? + open.len()..];
        let piece = match inside.find(close) {
            Some(end) => {
                rest = &inside[end + close.len()..];
                &inside[..end]
            }
            None => {
                rest = "";
                inside.strip_suffix('\n').filter(|_| cut).unwrap_or(inside)
            }
        };
        Some(piece)
    })
}

/// Parses a function. `None` if its name is not closed.
///
/// # Errors
/// If JSON cannot represent a value.
fn read(function: &str, tools: &[Value]) -> Result<Option<ToolCall>, ()> {
    let Some((name, body)) = function.split_once('>') else { return Ok(None) };
    let mut fields = Fields::default();
    for piece in pieces(body, "<parameter=", "</parameter>", true) {
        let Some((key, value)) = piece.split_once('>') else { continue };
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        fields.set_text(key, typed(value, parameter(tools, name, key)));
    }
    call(name, &fields.dict()).map(Some).ok_or(())
}

fn typed(value: &str, schema: Option<&Value>) -> Object {
    let text = || Object::Text(value.to_owned());
    if value.eq_ignore_ascii_case("null") {
        return Object::None;
    }
    let Some(schema) = schema else { return text() };
    let kind = schema.get("type").map_or_else(|| "string".to_owned(), text_of).trim().to_lowercase();
    let starts = |words: &[&str]| words.iter().any(|word| kind.starts_with(word));
    if ["string", "str", "text", "varchar", "char", "enum"].contains(&kind.as_str()) {
        return text();
    }
    if starts(&["int", "uint", "long", "short", "unsigned"]) {
        return int_of(value).map_or_else(text, Object::Int);
    }
    if starts(&["num", "float"]) {
        let number = float_of(value).filter(|number| number.is_finite());
        return number.map_or_else(text, |number| integral_digits(number).map_or(Object::Float(number), Object::Int));
    }
    if ["boolean", "bool", "binary"].contains(&kind.as_str()) {
        return Object::Bool(value.eq_ignore_ascii_case("true"));
    }
    let json = (kind == "object" || kind.starts_with("dict")).then(|| loads(value).ok()).flatten();
    json.or_else(|| literal_eval(value)).unwrap_or_else(text)
}
