//! The parts of a row that is made.

use serde_json::{Map, Value, json};

use super::answers::Answer;

/// The names of the columns of prompt, response and score.
pub struct Columns([&'static str; 3]);
pub const OURS: Columns = Columns(["prompt", "completion", "score"]);
pub const OPENRLHF: Columns = Columns(["input", "output", "reward"]);

impl Columns {
    /// Returns the row of a response.
    pub fn row(&self, answer: &Answer) -> Map<String, Value> {
        let response = match self.0 == OURS.0 {
            true => turn(&answer.prompt, &answer.response),
            false => answer.response.as_str().into(),
        };
        object([(self.0[0], (*answer.prompt).clone()), (self.0[1], response), (self.0[2], json!(answer.score))])
    }
}

/// The response in the form of its prompt: a text, or a conversation of the assistant's turn.
pub fn turn(prompt: &Value, response: &str) -> Value {
    if prompt.is_array() { json!([{"role": "assistant", "content": response}]) } else { response.into() }
}

/// Returns an object of these fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The first of the answers whose score is highest.
pub fn highest<'a>(answers: &[&'a Answer]) -> &'a Answer {
    answers
        .iter()
        .copied()
        .reduce(|best, other| if other.score > best.score { other } else { best })
        .expect("a group has answers")
}
