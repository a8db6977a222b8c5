//! Helpers for making rows.

use serde_json::{Map, Value, json};

use super::scored::ScoredResponse;

/// Column names of prompt, response and score.
pub(super) struct ScoredColumns([&'static str; 3]);
pub(crate) const OURS: ScoredColumns = ScoredColumns(["prompt", "completion", "score"]);
pub(super) const OPENRLHF: ScoredColumns = ScoredColumns(["input", "output", "reward"]);

impl ScoredColumns {
    /// Returns the row of a response. Our own rows include the messages and tools of a conversation.
    pub(super) fn row(&self, response: &ScoredResponse) -> Map<String, Value> {
        let completion = match self.0 == OURS.0 {
            true => turns(response),
            false => response.response.as_str().into(),
        };
        let mut row = object([(self.0[0], prompt(response)), (self.0[1], completion), (self.0[2], json!(response.score))]);
        row.extend(tools(response));
        row
    }
}

/// Returns the prompt of a response: for a conversation, the messages that the model read.
pub(super) fn prompt(response: &ScoredResponse) -> Value {
    response.conversation.as_ref().map_or_else(|| (*response.prompt).clone(), |conversation| conversation.prompt.clone().into())
}

/// Returns the response in the form of its prompt: text, or messages from the assistant's first turn to its last.
pub(super) fn turns(response: &ScoredResponse) -> Value {
    match &response.conversation {
        Some(conversation) => conversation.completion.clone().into(),
        None if response.prompt.is_array() => json!([{"role": "assistant", "content": response.response}]),
        None => response.response.as_str().into(),
    }
}

/// Returns the column of a conversation's tools, as JSON text, which all stages read, because schemas differ in shape.
pub(super) fn tools(response: &ScoredResponse) -> Option<(String, Value)> {
    let tools = response.conversation.as_ref().map(|conversation| &conversation.tools).filter(|tools| !tools.is_empty())?;
    Some(("tools".to_owned(), Value::from(tools.clone()).to_string().into()))
}

/// Returns an object with these fields.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the first response with the highest score.
pub(super) fn highest<'a>(responses: &[&'a ScoredResponse]) -> &'a ScoredResponse {
    responses
        .iter()
        .copied()
        .reduce(|best, other| if other.score > best.score { other } else { best })
        .expect("a group has responses")
}
