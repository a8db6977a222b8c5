//! TRL's environment, in the process of its conversation: it begins an episode, its methods are tools ([`PythonTools`]), and it
//! may give a reward at the end.
//!
//! [`PythonTools`]: super::PythonTools

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::conversation::Session;
use super::view::number;
use crate::participants::Outcome;

/// An instance of TRL's environment, created for one conversation.
pub struct PythonEnvironment {
    session: Session,
    name: Option<String>,
    timeout: Duration,
}

impl PythonEnvironment {
    /// Selects the environment with this name, or the only one with `None`.
    pub fn new(session: Session, name: Option<String>, timeout: Duration) -> Self {
        Self { session, name, timeout }
    }

    /// Begins an episode with all columns of the row as arguments; returns the text to append to the last message of the prompt.
    ///
    /// # Errors
    /// An interrupt.
    pub fn reset(&self, row: &Map<String, Value>) -> Outcome<Option<String>> {
        let reply = self.session.ask("reset", &json!({ "environment": self.name, "row": row }), self.timeout)?;
        Ok(reply.map(|reply| reply["text"].as_str().map(str::to_owned)))
    }

    /// Returns the reward at the end of the episode; `None` if the environment returns none.
    ///
    /// # Errors
    /// An interrupt.
    pub fn reward(&self) -> Outcome<Option<f64>> {
        let reply = self.session.ask("reward", &json!({}), self.timeout)?;
        Ok(reply.map(|reply| number(&reply["reward"])))
    }
}
