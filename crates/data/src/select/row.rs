//! Helpers for making rows.

use serde_json::{Map, Value, json};

use super::scored::ScoredResponse;

/// Column names of prompt, response and score.
pub struct Columns([&'static str; 3]);
pub const OURS: Columns = Columns(["prompt", "completion", "score"]);
pub const OPENRLHF: Columns = Columns(["input", "output", "reward"]);

impl Columns {
    /// Returns the row of a response. Our own rows include the messages and tools of a conversation.
    pub fn row(&self, answer: &ScoredResponse) -> Map<String, Value> {
        let response = match self.0 == OURS.0 {
            true => turns(answer),
            false => answer.response.as_str().into(),
        };
        let mut row = object([(self.0[0], prompt(answer)), (self.0[1], response), (self.0[2], json!(answer.score))]);
        row.extend(tools(answer));
        row
    }
}

/// Returns the prompt of a response: for a conversation, the messages that the model read.
pub fn prompt(answer: &ScoredResponse) -> Value {
    answer.talk.as_ref().map_or_else(|| (*answer.prompt).clone(), |talk| talk.prompt.clone().into())
}

/// Returns the response in the form of its prompt: text, or messages from the assistant's first turn to its last.
pub fn turns(answer: &ScoredResponse) -> Value {
    match &answer.talk {
        Some(talk) => talk.completion.clone().into(),
        None if answer.prompt.is_array() => json!([{"role": "assistant", "content": answer.response}]),
        None => answer.response.as_str().into(),
    }
}

/// Returns the column of a conversation's tools, as JSON text, which all stages read, because schemas differ in shape.
pub fn tools(answer: &ScoredResponse) -> Option<(String, Value)> {
    let tools = answer.talk.as_ref().map(|talk| &talk.tools).filter(|tools| !tools.is_empty())?;
    Some(("tools".to_owned(), Value::from(tools.clone()).to_string().into()))
}

/// Returns an object with these fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the first response with the highest score.
pub fn highest<'a>(answers: &[&'a ScoredResponse]) -> &'a ScoredResponse {
    answers
        .iter()
        .copied()
        .reduce(|best, other| if other.score > best.score { other } else { best })
        .expect("a group has answers")
}
