//! Parses the text of a region.

use std::sync::LazyLock;

use regex::Regex;

use super::field::FieldFormat;
use super::patterns::pattern;
use burnish_util::python_json::loads;
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_text::strip;

/// Returns the function of a call: a dict with its name and arguments, or the model's text in its place.
///
/// # Errors
/// If the text cannot be parsed.
pub(super) fn function(read: &FieldFormat, name: Option<String>, body: &str) -> Result<Object, String> {
    let arguments = match read {
        FieldFormat::Text => Object::Text(strip(body).to_owned()),
        FieldFormat::Function => return loads(body),
        FieldFormat::Json => loads(body)?,
        FieldFormat::Lax => loads(&strict(body)?)?,
        FieldFormat::Pairs(found_by) => pairs(found_by, body, |value| Object::Text(value.to_owned()))?,
        FieldFormat::Quoted(found_by) => pairs(found_by, body, quoted)?,
    };
    let mut function = Fields::default();
    function.set_text("name", Object::Text(name.unwrap_or_default()));
    function.set_text("arguments", arguments);
    Ok(function.dict())
}

fn pairs(found_by: &'static str, body: &str, value: fn(&str) -> Object) -> Result<Object, String> {
    let mut fields = Fields::default();
    for found in pattern(found_by)?.captures_iter(body) {
        let [key, text] = found.extract().1;
        fields.set_text(key, value(strip(text)));
    }
    Ok(fields.dict())
}

/// Parses JSON with strings in single quotes; otherwise returns text. An unclosed last quote is an ordinary character.
fn quoted(value: &str) -> Object {
    let pieces: Vec<&str> = value.split('\'').collect();
    let mut json = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        match (i % 2 == 1, i + 1 == pieces.len()) {
            (true, false) => json.push_str(&Object::Text((*piece).to_owned()).to_json().unwrap_or_default()),
            (true, true) => json.extend(["'", piece]),
            _ => json.push_str(piece),
        }
    }
    loads(&json).unwrap_or_else(|_| Object::Text(value.to_owned()))
}

/// Converts JSON with bare keys, and with strings between `<|"|>`, to standard JSON.
fn strict(body: &str) -> Result<String, String> {
    static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"([{,])(\w+):").expect("a constant pattern"));
    const QUOTE: &str = "<|\"|>";
    if body.contains(['\x01', '\x02']) {
        return Err("it has control characters".to_owned());
    }
    let pieces: Vec<&str> = body.split(QUOTE).collect();
    let mut outside = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        // Strings are replaced by marks, so that keys are found only outside of strings. An unclosed last quote is ordinary text.
        match (i % 2 == 1, i + 1 == pieces.len()) {
            (true, false) => outside.push('\x01'),
            (true, true) => outside.extend([QUOTE, piece]),
            _ => outside.push_str(piece),
        }
    }
    let keyed = KEY.replace_all(&outside, "$1\"$2\":");
    let mut strings = pieces.iter().skip(1).step_by(2);
    let filled = keyed.split('\x01').enumerate().map(|(i, piece)| {
        let string = if i == 0 { None } else { strings.next() };
        let json = string.and_then(|string| Object::Text((*string).to_owned()).to_json());
        json.unwrap_or_default() + piece
    });
    Ok(filled.collect())
}
