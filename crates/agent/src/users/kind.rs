//! What a built-in user is.

use anyhow::Result;
use serde_json::Value;

use crate::parties::User;

/// A simulated user of this program.
pub struct Kind {
    /// The name in a row's `interaction_kwargs.name`, unless the configuration gives another.
    pub name: &'static str,
    /// The classes that `class_name` names it by in an interaction configuration.
    pub class_names: &'static [&'static str],
    /// One line: what it does, and what it agrees with.
    pub doc: &'static str,
    /// Begins a conversation with the row's `interaction_kwargs`, an object.
    ///
    /// # Errors
    /// What the row lacks.
    pub begin: fn(&Value) -> Result<Box<dyn User>>,
}
