//! The interface of built-in tools.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::ReplyFailure;

/// A kind of built-in tool.
pub struct BuiltInKind {
    /// The name of the tool, unless the configuration's schema has another.
    pub name: &'static str,
    /// The values of `class_name` in tool configurations that select the tool.
    pub class_names: &'static [&'static str],
    /// One line: the tool's purpose, and its counterpart.
    pub doc: &'static str,
    /// The keys of `config` that the tool reads, except `type`.
    pub settings: &'static [&'static str],
    /// The schema in OpenAI's form, for a configuration without one.
    pub schema: fn() -> Value,
    /// Creates the tool from `config`, an object.
    ///
    /// # Errors
    /// A missing or invalid setting.
    pub make: fn(&Value) -> Result<Box<dyn BuiltInTool>>,
}

/// A tool that handles the calls of all conversations, from many threads.
pub trait BuiltInTool: Send + Sync {
    /// Returns the state at the start of a conversation, from the row's `tools_kwargs.NAME.create_kwargs` (null if missing).
    ///
    /// # Errors
    /// A value that the row lacks.
    fn begin(&self, _kwargs: &Value) -> Result<Value> {
        Ok(Value::Null)
    }

    /// Returns true if calls wait for something outside this process. Such calls run on separate threads, and keep no state.
    fn waits(&self) -> bool {
        false
    }

    /// Runs one call within the time limit. The arguments are JSON, usually an object.
    ///
    /// # Errors
    /// [`ToolError`] if the tool has no result; the model gets its message.
    fn call(&self, arguments: &Value, state: &mut Value, timeout: Duration) -> Result<ToolOutput, ToolError>;
}

/// The output of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    pub text: String,
    /// The reward; `None` is not recorded.
    pub reward: Option<f64>,
}

impl ToolOutput {
    /// Returns an output with the reward 0, which verl's tools return if they judge nothing.
    pub fn text(text: String) -> Self {
        Self { text, reward: Some(0.0) }
    }
}

/// The error of a call without a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    pub failure: ReplyFailure,
    /// The error in one line.
    pub message: String,
}

impl ToolError {
    /// Returns the error for an exception of a tool.
    pub fn raised(message: impl Into<String>) -> Self {
        Self { failure: ReplyFailure::Raised, message: message.into() }
    }

    /// Returns the error for a call that exceeded its time limit.
    pub fn late(timeout: Duration) -> Self {
        Self { failure: ReplyFailure::Timeout, message: format!("timed out after {} s", timeout.as_secs_f64()) }
    }
}
