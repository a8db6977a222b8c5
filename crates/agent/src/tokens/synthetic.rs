//! The synthetic conversation after which messages are rendered. Its own tokens are cut off again.

use serde_json::{Value, json};

/// The beginnings of synthetic conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyntheticStart {
    /// A system message and a user's, as in verl.
    System,
    /// A user's message, for templates that refuse verl's roles. Gemma's templates have no system role, and neither they nor
    /// those of early Mistral models take two consecutive messages of users. verl cannot continue such conversations.
    User,
}

impl SyntheticStart {
    /// Returns the conversation before a message of a user or system.
    pub(crate) fn before_message(self) -> Vec<Value> {
        match self {
            Self::System => vec![system(), user()],
            Self::User => vec![user(), json!({"role": "assistant", "content": "continuous token synthetic assistant"})],
        }
    }

    /// Returns the conversation before tool results; `calls` is the assistant's message with the calls.
    pub(crate) fn before_tools(self, calls: Value) -> Vec<Value> {
        match self {
            Self::System => vec![system(), user(), calls],
            Self::User => vec![user(), calls],
        }
    }
}

fn system() -> Value {
    json!({"role": "system", "content": "continuous token synthetic system"})
}

fn user() -> Value {
    json!({"role": "user", "content": "continuous token synthetic user"})
}

/// Returns an assistant message with a call for each tool result, under the result's id and name if it has them. The arguments
/// are an empty object, in the form that the template takes.
pub(crate) fn calls_for(answers: &[Value], arguments: &Value) -> Value {
    let call = |(i, answer): (usize, &Value)| {
        let function =
            json!({"name": name(answer).unwrap_or_else(|| "continuous_token_tool".to_owned()), "arguments": arguments});
        json!({"id": call_id(answer, i), "type": "function", "function": function})
    };
    calling(answers.iter().enumerate().map(call).collect())
}

/// Returns an assistant message with these calls.
pub(super) fn calling(calls: Vec<Value>) -> Value {
    json!({"role": "assistant", "content": "", "reasoning_content": "reasoning", "tool_calls": calls})
}

/// Returns the name in a tool result; values other than text as Python's `str` writes them.
pub(super) fn name(answer: &Value) -> Option<String> {
    let name = answer.get("name").filter(|name| !matches!(name, Value::Null | Value::Bool(false)))?;
    Some(burnish_util::python_value::text_of(name)).filter(|name| !name.is_empty())
}

/// Returns the id of the call that a result belongs to, or one made from its position.
pub(crate) fn call_id(answer: &Value, position: usize) -> Value {
    let call_id = answer.get("tool_call_id").filter(|id| !id.is_null());
    call_id.cloned().unwrap_or_else(|| format!("continuous_token_call_{position}").into())
}
