//! Messages that are rendered together: the results of the calls of one turn, or one other message.

use serde_json::Value;

/// A group of messages and its context.
#[derive(Clone, Copy, Debug)]
pub struct MessageGroup<'a> {
    /// The messages of the group: one or more tool results, or one other message.
    pub messages: &'a [Value],
    /// The conversation before the appended messages.
    pub history: &'a [Value],
    /// The appended messages before this group.
    pub earlier: &'a [Value],
    /// True if the model's next turn is opened after the group.
    pub opens: bool,
}

impl<'a> MessageGroup<'a> {
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

    /// Returns the role of the messages.
    pub fn role(&self) -> &'a str {
        self.messages.first().map_or("", role)
    }

    /// Returns the messages before the group, the latest first.
    pub fn before(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.history.iter().chain(self.earlier).rev()
    }
}

/// The role of tool results.
pub(super) const TOOL: &str = "tool";

/// Returns the role of a message; empty if it has none.
pub(super) fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the text of a content: a text, or the texts of its parts; other content as Python's `str` writes it.
pub(super) fn text_of(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        Some(other) => burnish_util::python_value::text_of(other),
    }
}
