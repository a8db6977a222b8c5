//! Messages that are rendered together: the answers to the calls of one turn, or one other message.

use serde_json::Value;

/// A group of messages and what is before it.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The messages of the group: of tools, or a single other one.
    pub messages: &'a [Value],
    /// The conversation before the messages that are appended.
    pub history: &'a [Value],
    /// The messages that are appended before this group.
    pub earlier: &'a [Value],
    /// True if the model's next turn is opened behind it.
    pub opens: bool,
}

impl<'a> Group<'a> {
    /// Splits messages that are appended to `history`.
    pub fn split(history: &'a [Value], new: &'a [Value]) -> Vec<Self> {
        let mut groups = Vec::new();
        let mut start = 0;
        for messages in new.chunk_by(|a, b| role(a) == TOOL && role(b) == TOOL) {
            groups.push(Self { messages, history, earlier: &new[..start], opens: false });
            start += messages.len();
        }
        groups
    }

    /// The role of its messages.
    pub fn role(&self) -> &'a str {
        self.messages.first().map_or("", role)
    }

    /// The messages before it, the latest first.
    pub fn before(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.history.iter().chain(self.earlier).rev()
    }
}

/// The role of tools' answers.
pub const TOOL: &str = "tool";

/// The role of a message; empty if it has none.
pub fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content: a text, or the texts of its parts; other content is written as Python's `str` writes it.
pub fn text_of(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        Some(other) => burnish_util::python_value::text_of(other),
    }
}
