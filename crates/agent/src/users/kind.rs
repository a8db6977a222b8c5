//! The interface of built-in users.

use anyhow::Result;
use serde_json::Value;

use crate::participants::User;

/// A kind of built-in simulated user.
pub struct UserKind {
    /// The name in a row's `interaction_kwargs.name`, unless the configuration sets another.
    pub name: &'static str,
    /// The values of `class_name` in interaction configurations that select the user.
    pub class_names: &'static [&'static str],
    /// One line: the user's purpose, and its counterpart.
    pub doc: &'static str,
    /// Begins a conversation with the row's `interaction_kwargs`, an object.
    ///
    /// # Errors
    /// A value that the row lacks.
    pub begin: fn(&Value) -> Result<Box<dyn User>>,
}
