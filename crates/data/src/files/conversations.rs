//! Conversations of many turns as `trainer generate` writes them with the responses: in the column `messages`, a JSON text for
//! each.

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// The column of conversations, next to the column of responses.
pub const MESSAGES: &str = "messages";

/// The columns of a conversation in a line of `trainer.rollout_data_dir`.
pub const OF_LINE: [&str; 5] = [MESSAGES, "asked", "tools", "tokens_only", "end"];

/// A conversation that a model led: what training reads of it.
#[derive(Clone, Debug, Deserialize)]
pub struct WrittenConversation {
    messages: Vec<Value>,
    /// The number of the prompt's messages; older files do not have it.
    #[serde(default)]
    asked: Option<usize>,
    /// The schemas of the tools that the model was shown.
    #[serde(default)]
    pub tools: Vec<Value>,
    /// True if the text between the turns is known as tokens only.
    #[serde(default)]
    tokens_only: bool,
    /// The reason for its end, by which it is told from other objects with messages.
    #[serde(rename = "end")]
    _end: IgnoredAny,
}

impl WrittenConversation {
    /// Reads a JSON text; `None` if it is something else.
    pub fn of_text(text: &str) -> Option<Self> {
        text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
    }

    /// Reads the conversations of a cell: a text, or a list of texts. `None` if it has something else.
    pub fn listed(cell: &Value) -> Option<Vec<Self>> {
        match cell {
            Value::String(text) => Some(vec![Self::of_text(text)?]),
            Value::Array(texts) if !texts.is_empty() => texts.iter().map(|text| Self::of_text(text.as_str()?)).collect(),
            _ => None,
        }
    }

    /// Reads a line of `trainer.rollout_data_dir`, whose columns are those of a conversation.
    ///
    /// # Errors
    /// If they are something else.
    pub fn of_line(columns: &Map<String, Value>) -> Result<Self> {
        Ok(serde_json::from_value(columns.clone().into())?)
    }

    /// Returns the messages of the prompt, and those of the completion: from the model's first turn to its last, with what tools
    /// and users said between. The completion is empty where the model said nothing.
    ///
    /// # Errors
    /// A conversation without messages of its own.
    pub fn parts(&self) -> Result<(&[Value], &[Value])> {
        ensure!(
            !self.tokens_only,
            "the messages of this conversation are the text of its tokens, with what a template wrote between the turns: loops of your own \
             and environments of texts have no messages, and text completions of a program have none"
        );
        let is_model = |message: &Value| message["role"] == "assistant";
        let end = self.messages.iter().rposition(is_model).map_or(0, |last| last + 1);
        let asked = self.asked.or_else(|| self.messages.iter().position(is_model)).unwrap_or(end);
        let asked = asked.min(self.messages.len());
        Ok((&self.messages[..asked], &self.messages[asked..end.max(asked)]))
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
