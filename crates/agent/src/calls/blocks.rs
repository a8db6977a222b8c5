//! Text between two markers, and other helpers that formats share.

use super::format::{ParsedTurn, ToolCall};
use burnish_util::python_json::loads;
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_text::strip;

/// Padding tokens of tokenizers. A turn contains them only if the model sampled them.
pub(crate) const PADDINGS: &[&str] = &["<|pad|>", "<|padding|>", "<pad>"];

/// Returns the text without any of these tokens.
pub(super) fn without(text: &str, tokens: &[&str]) -> String {
    tokens.iter().fold(text.to_owned(), |text, token| if text.contains(token) { text.replace(token, "") } else { text })
}

/// The blocks between an opening marker and the next closing one.
pub(super) struct Blocks<'a> {
    /// The text inside each block.
    pub inside: Vec<&'a str>,
    /// The text before the first opening marker; the whole text without one.
    pub before: &'a str,
    /// The text outside the blocks.
    pub outside: String,
    /// True if an opening marker has no closing one.
    pub unclosed: bool,
    /// True if there is a closing marker anywhere.
    closes: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn find(text: &'a str, open: &str, close: &str) -> Self {
        let mut blocks =
            Self { inside: Vec::new(), before: text, outside: String::new(), unclosed: false, closes: text.contains(close) };
        let mut rest = text;
        let mut first = true;
        while let Some(at) = rest.find(open) {
            if first {
                blocks.before = &rest[..at];
                first = false;
            }
            let inside = &rest[at + open.len()..];
            let Some(end) = inside.find(close) else {
                blocks.unclosed = true;
                break;
            };
            blocks.inside.push(&inside[..end]);
            blocks.outside.push_str(&rest[..at]);
            rest = &inside[end + close.len()..];
        }
        blocks.outside.push_str(rest);
        blocks
    }

    /// Parses the calls in each block, for formats whose content is the text before the first block. A turn without a block is
    /// text. `read` returns `None` for a block that cannot be parsed.
    pub(super) fn calls(self, text: &str, mut read: impl FnMut(&str) -> Option<Vec<ToolCall>>) -> ParsedTurn {
        // As in verl, both markers must occur, in any order.
        let mut parsed = ParsedTurn::text(if self.closes { self.before } else { text }, usize::from(self.unclosed));
        for inside in self.inside {
            match read(inside) {
                Some(calls) if !calls.is_empty() => parsed.calls.extend(calls),
                _ => parsed.unreadable += 1,
            }
        }
        parsed
    }
}

/// Parses a value as JSON; otherwise returns its text without surrounding whitespace.
pub(crate) fn json_or_text(raw: &str) -> Object {
    let value = strip(raw);
    loads(value).unwrap_or_else(|_| Object::Text(value.to_owned()))
}

/// Returns a call without an id; `None` if JSON cannot represent the arguments.
pub(super) fn call(name: &str, arguments: &Object) -> Option<ToolCall> {
    Some(ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_json()? })
}

/// Reads a call from a JSON object with a `name` and `arguments` (or another key of `keys`).
pub(super) fn json_call(value: &Object, keys: &[&str]) -> Option<ToolCall> {
    let Object::Text(name) = value.get("name")? else { return None };
    call(name, keys.iter().find_map(|key| value.get(key))?)
}

/// Parses a JSON list of calls, or one call; `None` if any of them is invalid.
pub(super) fn json_calls(text: &str, keys: &[&str]) -> Option<Vec<ToolCall>> {
    match loads(text).ok()? {
        Object::List(values) => values.iter().map(|value| json_call(value, keys)).collect(),
        value => Some(vec![json_call(&value, keys)?]),
    }
}

/// Collects arguments from pairs of key and text; whitespace around keys is removed.
pub(super) fn arguments<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Object {
    let mut fields = Fields::default();
    for (key, value) in pairs {
        fields.set_text(strip(key), json_or_text(value));
    }
    fields.dict()
}

/// Returns the turn without these tokens at its end.
pub(super) fn without_ends<'a>(text: &'a str, ends: &[&str]) -> &'a str {
    let mut text = text;
    while let Some(shorter) = ends.iter().find_map(|end| text.trim_end().strip_suffix(end)) {
        text = shorter;
    }
    text
}

/// Returns the turn without the special tokens that end it, such as `<|eot_id|>`.
pub(crate) fn without_end(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let shorter = match text.rfind('<') {
            Some(at) if text[at..].starts_with("<|") && text.ends_with("|>") && text.len() > at + 4 => text[..at].trim_end(),
            Some(at) if matches!(&text[at..], "</s>" | "<end_of_turn>" | "<eos>") => text[..at].trim_end(),
            _ => return text,
        };
        text = shorter;
    }
}
