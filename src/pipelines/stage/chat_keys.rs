//! The columns of a row's variables of the chat template.

use std::path::PathBuf;

use anyhow::{Context, Result};

use burnish_config::schema::Schema;
use burnish_config::{Value, defaults};
use burnish_data::examples::ChatColumns;
use burnish_data::rows::FileRows;
use burnish_data::with_remedies;

/// The settings that name these columns.
#[derive(Clone, Copy)]
pub struct ChatKeys<'a> {
    pub tools_key: &'a str,
    pub enable_thinking_key: &'a str,
    pub chat_template_kwargs_key: &'a str,
}

impl ChatKeys<'_> {
    /// Returns the columns.
    pub fn columns(&self) -> ChatColumns {
        ChatColumns {
            tools_key: self.tools_key.to_owned(),
            chat_template_kwargs_key: self.chat_template_kwargs_key.to_owned(),
            enable_thinking_key: Some(self.enable_thinking_key.to_owned()),
        }
    }

    /// Checks that these columns exist, and the columns of `more` settings. A column may be missing if its setting has the
    /// default of `C`.
    ///
    /// # Errors
    /// If a column is missing; the message lists the existing ones.
    pub fn check<C: Schema>(&self, files: &[PathBuf], more: &[(&str, &str)]) -> Result<()> {
        let defaults = defaults(C::DEFAULT_NAME)?;
        let own = [
            ("data.tools_key", self.tools_key),
            ("data.enable_thinking_key", self.enable_thinking_key),
            ("data.chat_template_kwargs_key", self.chat_template_kwargs_key),
        ];
        for &(key, column) in own.iter().chain(more) {
            let is_default = matches!(defaults.value(key), Some(Value::Text(default)) if default == column);
            if !is_default && !FileRows::read(files, &[], &[column])?.has_column(column) {
                // Reading the column as required makes the error list the existing columns.
                let read = FileRows::read(files, &[column], &[]).map_err(|error| with_remedies(error, &[(key, column)]));
                read.context(key.to_owned())?;
            }
        }
        Ok(())
    }
}
