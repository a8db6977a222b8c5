//! The recipe that `trainer run` makes of another library's command, kept in the folder of the run.

use std::path::Path;

use burnish_config::{Tree, Value};
use burnish_util::fs::write_atomic;
use burnish_util::secret::hide;
use burnish_util::shell::{command_line, word};

use super::conversion::with_space;
use crate::job::run_folder::DIR;

/// Name of the file.
const FILE: &str = "recipe.yaml";

/// A recipe to keep.
#[derive(Clone)]
pub(crate) struct SavedRecipe {
    subcommand: String,
    text: String,
    /// Overrides of the recipe.
    overrides: Vec<String>,
}

impl SavedRecipe {
    pub(super) fn new(subcommand: &str, recipe: &str, overrides: &[String]) -> Self {
        Self { subcommand: subcommand.to_owned(), text: hide(recipe).into_owned(), overrides: overrides.to_vec() }
    }

    /// Writes the recipe to the folder of a run that has started. A failure is only a warning.
    pub(super) fn keep(&self, settings: &Tree) {
        let Some(Value::Text(folder)) = settings.value(DIR) else { return };
        let path = Path::new(folder).join(FILE);
        let command = format!("trainer {}--config {}", with_space(&self.subcommand), word(&path));
        let further = if self.overrides.is_empty() { String::new() } else { format!(" {}", command_line(&self.overrides)) };
        match write_atomic(&path, self.text.as_bytes()) {
            Ok(()) => tracing::info!("recipe: {}", hide(&format!("{command}{further}"))),
            Err(error) => tracing::warn!("the recipe is not kept: {error:#}"),
        }
    }
}
