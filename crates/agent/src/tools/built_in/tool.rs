//! What a built-in tool is.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::Trouble;

/// A tool of this program.
pub struct Kind {
    /// The name of the tool, unless its schema in the configuration has another.
    pub name: &'static str,
    /// The classes that `class_name` names it by in a tool configuration.
    pub class_names: &'static [&'static str],
    /// One line: what it does, and what it agrees with.
    pub doc: &'static str,
    /// The keys of `config` that it reads, beside `type`.
    pub settings: &'static [&'static str],
    /// Its schema in OpenAI's form, for a configuration without one.
    pub schema: fn() -> Value,
    /// Makes it of `config`, an object.
    ///
    /// # Errors
    /// A setting that is missing or wrong.
    pub make: fn(&Value) -> Result<Box<dyn BuiltIn>>,
}

/// A tool that was made. It answers the calls of all conversations, from many threads.
pub trait BuiltIn: Send + Sync {
    /// The state with which a conversation begins, made of the row's `tools_kwargs.NAME.create_kwargs`; null if there are none.
    ///
    /// # Errors
    /// What the row lacks.
    fn begin(&self, _kwargs: &Value) -> Result<Value> {
        Ok(Value::Null)
    }

    /// True if a call waits for something outside this process. Such calls are carried out on threads of their own, and keep no state.
    fn waits(&self) -> bool {
        false
    }

    /// Answers one call within the time. The arguments are JSON, usually an object.
    ///
    /// # Errors
    /// [`Failed`] if there is no answer; the model is told the message.
    fn call(&self, arguments: &Value, state: &mut Value, timeout: Duration) -> Result<Told, Failed>;
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub text: String,
    /// `None` is not recorded.
    pub reward: Option<f64>,
}

impl Told {
    /// An answer with the reward of 0 that tools of verl give where they judge nothing.
    pub fn text(text: String) -> Self {
        Self { text, reward: Some(0.0) }
    }
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    pub trouble: Trouble,
    /// One line.
    pub message: String,
}

impl Failed {
    /// What a tool of Python would raise.
    pub fn raised(message: impl Into<String>) -> Self {
        Self { trouble: Trouble::Raised, message: message.into() }
    }

    /// A call that took longer than it may.
    pub fn late(timeout: Duration) -> Self {
        Self { trouble: Trouble::Timeout, message: format!("timed out after {} s", timeout.as_secs_f64()) }
    }
}
