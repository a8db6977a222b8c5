//! JSON as Python writes it: `NaN`, `Infinity` and `-Infinity` are bare words, which JSON does not have.

use std::path::Path;

use anyhow::{Context, Result};
use burnish_util::foreign;
use serde_json::Value;

/// Size limit of a record, in bytes: a million steps of a hundred metrics have some gigabytes.
pub(super) const RECORD: u64 = 4 << 30;

const WORDS: &[&str] = &["-Infinity", "Infinity", "NaN"];

/// Reads a file of one JSON value.
///
/// # Errors
/// If the file cannot be read or is not JSON.
pub(super) fn read_json(path: &Path) -> Result<Value> {
    let text = foreign::read_text(path, RECORD)?;
    parse(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Parses JSON. A bare word for a number becomes a text, which [`burnish_util::json_number::from_value`] understands.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    match serde_json::from_str(text) {
        Err(_) if WORDS.iter().any(|word| text.contains(word)) => serde_json::from_str(&quoted(text)),
        parsed => parsed,
    }
}

/// Puts bare words into quotes, outside of texts.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            let end = end_of_text(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if let Some(word) = WORDS.iter().find(|word| rest.starts_with(**word)) {
            out.push('"');
            out.push_str(word);
            out.push('"');
            rest = &rest[word.len()..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

/// Returns the byte after a text that begins with a quotation mark.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_python_are_numbers_and_texts_stay() {
        let read = parse(r#"{"a": NaN, "b\"NaN": [-Infinity, Infinity], "c": "NaN \\", "d": 1}"#).unwrap();
        assert_eq!(read, serde_json::json!({"a": "NaN", "b\"NaN": ["-Infinity", "Infinity"], "c": "NaN \\", "d": 1}));
        assert!(parse("{NaN").is_err() && parse("\"").is_err());
    }
}
