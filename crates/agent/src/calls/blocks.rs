//! Text between two markers, and what formats share in reading it.

use super::format::{Parsed, ToolCall};
use burnish_util::python_json::loads;
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_text::strip;

/// Paddings of tokenizers. A turn has them only if the model sampled them.
pub const PADDINGS: &[&str] = &["<|pad|>", "<|padding|>", "<pad>"];

/// The text without any of these.
pub fn without(text: &str, tokens: &[&str]) -> String {
    tokens.iter().fold(text.to_owned(), |text, token| if text.contains(token) { text.replace(token, "") } else { text })
}

/// The blocks from an opening marker to the next closing one.
pub struct Blocks<'a> {
    /// What stands inside each.
    pub inside: Vec<&'a str>,
    /// The text before the first opening marker; all of it if there is none.
    pub before: &'a str,
    /// The text without the blocks.
    pub beside: String,
    /// True if a marker opens a block that nothing closes.
    pub unclosed: bool,
    /// True if there is a closing marker, wherever it is.
    closes: bool,
}

impl<'a> Blocks<'a> {
    pub fn of(text: &'a str, open: &str, close: &str) -> Self {
        let mut blocks =
            Self { inside: Vec::new(), before: text, beside: String::new(), unclosed: false, closes: text.contains(close) };
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
            blocks.beside.push_str(&rest[..at]);
            rest = &inside[end + close.len()..];
        }
        blocks.beside.push_str(rest);
        blocks
    }

    /// Reads the calls in each block, for formats that take the text before the first block for the content, and a turn without a block
    /// for text. `None` from `read` is a block that cannot be read.
    pub fn calls(self, text: &str, mut read: impl FnMut(&str) -> Option<Vec<ToolCall>>) -> Parsed {
        // As verl does it: both markers must occur, but not in their order.
        let mut parsed = Parsed::text(if self.closes { self.before } else { text }, usize::from(self.unclosed));
        for inside in self.inside {
            match read(inside) {
                Some(calls) if !calls.is_empty() => parsed.calls.extend(calls),
                _ => parsed.unreadable += 1,
            }
        }
        parsed
    }
}

/// A value that is JSON, or else its text; without the space around it.
pub fn json_or_text(raw: &str) -> Object {
    let value = strip(raw);
    loads(value).unwrap_or_else(|_| Object::Text(value.to_owned()))
}

/// A call without an id; `None` if JSON cannot hold the arguments.
pub fn call(name: &str, arguments: &Object) -> Option<ToolCall> {
    Some(ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_json()? })
}

/// A call that is a JSON object with a `name` and `arguments`, or one of the other keys for them.
pub fn json_call(value: &Object, keys: &[&str]) -> Option<ToolCall> {
    let Object::Text(name) = value.get("name")? else { return None };
    call(name, keys.iter().find_map(|key| value.get(key))?)
}

/// A list of calls, or one call, as JSON; `None` if any of them cannot be read.
pub fn json_calls(text: &str, keys: &[&str]) -> Option<Vec<ToolCall>> {
    match loads(text).ok()? {
        Object::List(values) => values.iter().map(|value| json_call(value, keys)).collect(),
        value => Some(vec![json_call(&value, keys)?]),
    }
}

/// The arguments from pairs of a key and a text, the key without the space around it.
pub fn arguments<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Object {
    let mut fields = Fields::default();
    for (key, value) in pairs {
        fields.set_text(strip(key), json_or_text(value));
    }
    fields.dict()
}

/// The turn without the special tokens that end it, such as `<|eot_id|>`.
pub fn without_end(text: &str) -> &str {
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
