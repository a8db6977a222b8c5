//! A model that a text names: a path, or a name on Hugging Face's Hub.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::built_in;
use burnish_hub::{Hub, HubName, ModelParts, RepoKind};

/// Returns the name on the Hub that a text is; `None` for a path.
///
/// # Errors
/// If the text begins like a name and is not one, with the option.
pub(super) fn name_of(option: &str, text: &str) -> Result<Option<HubName>> {
    if text.is_empty() { Ok(None) } else { HubName::from_setting(text, RepoKind::Model).context(option.to_owned()) }
}

/// Returns the folder of a model on the Hub. `text`: the name as written.
///
/// # Errors
/// If the name cannot be found, with the option.
pub(super) fn folder_of(option: &str, text: &str, name: &HubName, parts: ModelParts) -> Result<PathBuf> {
    let found = Hub::from_env().and_then(|hub| hub.model(name, parts));
    let found = found.map_err(|error| anyhow::anyhow!("{option}: {}{error}", no_path(text)))?;
    Ok(found.paths.into_iter().next().unwrap_or_default())
}

/// Returns the folder of a whole model: a path, a built-in folder, or a name on the Hub.
///
/// # Errors
/// If a name cannot be found, with the option.
pub(super) fn complete_model(option: &str, folder: &Path) -> Result<PathBuf> {
    let text = folder.to_str().unwrap_or_default();
    match name_of(option, text)? {
        Some(name) => folder_of(option, text, &name, ModelParts::Whole),
        None => built_in::or_built_in(folder),
    }
}

/// Returns the beginning of a message about a text that is not a path either.
pub(super) fn no_path(text: &str) -> String {
    if text.starts_with("hf://") { String::new() } else { format!("no `{text}` is here, and ") }
}
