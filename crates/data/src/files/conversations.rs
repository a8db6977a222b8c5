//! Multi-turn conversations as written by `trainer generate`: JSON text in the column `messages`.

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Column of conversations, next to the column of responses.
pub const MESSAGES: &str = "messages";

/// Columns of a conversation in a line of `trainer.rollout_data_dir`.
pub(crate) const OF_LINE: [&str; 5] = [MESSAGES, "asked", "tools", "tokens_only", "end"];

/// A sampled conversation, with the fields that training reads.
#[derive(Clone, Debug, Deserialize)]
pub struct WrittenConversation {
    messages: Vec<Value>,
    /// Number of messages in the prompt; missing in older files.
    #[serde(default, rename = "asked")]
    prompt_messages: Option<usize>,
    /// Schemas of the tools in the prompt.
    #[serde(default)]
    pub tools: Vec<Value>,
    /// True if the text between the turns is only known as tokens.
    #[serde(default)]
    tokens_only: bool,
    /// Reason for the end; distinguishes a conversation from other objects with messages.
    #[serde(rename = "end")]
    _end: IgnoredAny,
}

impl WrittenConversation {
    /// Reads JSON text; `None` for other text.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
    }

    /// Reads the conversations of a cell: text, or a list of texts; `None` for other values.
    pub fn listed(cell: &Value) -> Option<Vec<Self>> {
        match cell {
            Value::String(text) => Some(vec![Self::from_text(text)?]),
            Value::Array(texts) if !texts.is_empty() => texts.iter().map(|text| Self::from_text(text.as_str()?)).collect(),
            _ => None,
        }
    }

    /// Reads a conversation from a line of `trainer.rollout_data_dir`.
    ///
    /// # Errors
    /// If the columns are not a conversation.
    pub(crate) fn from_line(columns: &Map<String, Value>) -> Result<Self> {
        Ok(serde_json::from_value(columns.clone().into())?)
    }

    /// Returns the messages of the prompt and of the completion. The completion goes from the model's first turn to its last,
    /// including tool results and user turns between them. It is empty if the model has no turn.
    ///
    /// # Errors
    /// A conversation that is only known as tokens.
    pub fn parts(&self) -> Result<(&[Value], &[Value])> {
        ensure!(
            !self.tokens_only,
            "this conversation has no separate messages, only the text of its tokens: custom loops, text environments and text \
             completions of programs have no messages"
        );
        let is_model = |message: &Value| message["role"] == "assistant";
        let end = self.messages.iter().rposition(is_model).map_or(0, |last| last + 1);
        let count = self.prompt_messages.or_else(|| self.messages.iter().position(is_model)).unwrap_or(end);
        let count = count.min(self.messages.len());
        Ok((&self.messages[..count], &self.messages[count..end.max(count)]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_its_prompt_and_what_followed() {
        let says = |role: &str, content: &str| json!({"role": role, "content": content});
        let messages = [says("user", "a"), says("assistant", "b"), says("user", "c"), says("assistant", "d"), says("user", "e")];
        let text = |more: Value| {
            let mut written = json!({"messages": messages, "end": "done", "num_turns": 5, "score": null});
            more.as_object().unwrap().iter().for_each(|(key, value)| written[key] = value.clone());
            Value::from(written.to_string())
        };
        let parts =
            |cell: Value| WrittenConversation::listed(&cell).map(|all| all[0].parts().map(|(a, b)| (a.len(), b.len())).ok());
        assert_eq!(parts(text(json!({"asked": 3}))), Some(Some((3, 1))));
        assert_eq!(parts(json!([text(json!({})), text(json!({"asked": 3}))])), Some(Some((1, 3))));
        assert_eq!(parts(text(json!({"tokens_only": true}))), Some(None));
        assert_eq!(parts(text(json!({"asked": 5}))), Some(Some((5, 0))));
        for other in [json!("{\"messages\": []}"), json!("hello"), json!([]), json!(messages), json!(null)] {
            assert_eq!(parts(other.clone()), None, "{other}");
        }
    }
}
