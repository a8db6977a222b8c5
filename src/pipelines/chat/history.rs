//! The messages of a chat.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The messages of a chat, and its system message.
pub(crate) struct ChatHistory {
    pub(super) system: Option<String>,
    messages: Vec<Value>,
    /// True if every text is continued by itself, without messages.
    pub(super) is_raw: bool,
}

impl ChatHistory {
    pub(super) fn new(system: Option<String>, is_raw: bool) -> Self {
        Self { system, messages: Vec::new(), is_raw }
    }

    /// Returns all messages, the system message first.
    pub(super) fn messages(&self) -> Vec<Value> {
        let system = self.system.iter().map(|text| json!({"role": "system", "content": text}));
        system.chain(self.messages.iter().cloned()).collect()
    }

    pub(super) fn push(&mut self, message: Value) {
        self.messages.push(message);
    }

    /// Returns the number of messages without the system message.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Removes the messages after the first `kept`.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.messages.truncate(kept);
    }

    /// Appends the chat to a file as a row of JSON lines, which `trainer sft` reads.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn save(&self, file: &Path) -> Result<()> {
        let line = format!("{}\n", json!({"messages": self.messages()}));
        let mut file_to_append =
            OpenOptions::new().append(true).create(true).open(file).with_context(|| file.display().to_string())?;
        file_to_append.write_all(line.as_bytes()).with_context(|| file.display().to_string())
    }
}
