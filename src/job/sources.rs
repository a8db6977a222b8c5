//! Checksums of the files that settings name: models, tokenizers, adapters, training rows and Python files. A resumed run
//! compares them with the sources of its checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::resume::likely_checkpoint;
use burnish_checkpoint::Sources;
use burnish_config::schema::{LocationKind, ResumeKeys, Schema};
use burnish_config::{Tree, Value};
use burnish_util::content::checksum;

/// The setting of a tokenizer, and the setting of the model whose tokenizer is the default.
const TOKENIZERS: &[(&str, &str)] = &[("data.tokenizer", "actor_rollout_ref.model.path"), ("model.tokenizer_path", "model.path")];
/// Files of a tokenizer that decide the ids of a text; the second list has the others, such as chat templates.
const IDS: &[&str] = &["tokenizer.json"];
const TEMPLATES: &[&str] =
    &["tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "chat_template.jinja", "chat_template.json"];
/// Word before the checksum of a model with its weights.
const MODEL: &str = "model";
/// Name of the second part of a tokenizer, after its key.
const TEMPLATE: &str = "(chat template and special tokens)";

/// Files that settings name: the key, a word for the kind of files, and the files.
pub(crate) struct NamedFiles(Vec<(String, &'static str, Vec<PathBuf>)>);

impl NamedFiles {
    /// Lists the files that the settings name, if they exist. The reader of a missing file reports it.
    pub(crate) fn new<T: Schema>(config: &mut T, tree: &Tree) -> Self {
        let mut found = Self(Vec::new());
        let mut folders = Vec::new();
        for place in config.locations() {
            let (key, location) = (place.key, place.location);
            let folder = location.as_path();
            match place.kind {
                LocationKind::Model { weights } => {
                    match weights && !location.lacks_weights() {
                        true => found.add(&key, MODEL, model_files(folder)),
                        false => found.add(&key, "shape", files_of(folder, |name| name == "config.json")),
                    }
                    folders.push((key, folder.to_owned()));
                }
                // The items of a list are one setting, and their order matters.
                // Validation compares its rows itself.
                LocationKind::Adapter => found.add(&key, "adapter", files_of(folder, |name| name.starts_with("adapter_"))),
                LocationKind::Tokenizer => folders.push((key, folder.to_owned())),
                LocationKind::TrainingData => {
                    found.add(key.rsplit_once('.').map_or(&key, |(list, _)| list), "rows", location.paths())
                }
                LocationKind::File => found.add(&key, "file", location.paths()),
                LocationKind::ValidationData | LocationKind::Data => {}
            }
        }
        for (key, of_model) in TOKENIZERS.iter().filter(|(key, _)| tree.value(key).is_some()) {
            let folder = [key, of_model].into_iter().find_map(|key| folders.iter().find(|(known, _)| known == key));
            let Some((_, folder)) = folder else { continue };
            found.add(key, "ids", files_of(folder, |name| IDS.contains(&name)));
            found.add(&format!("{key} {TEMPLATE}"), "text", files_of(folder, |name| TEMPLATES.contains(&name)));
        }
        for (key, ..) in tree.settings() {
            let is_path = key.ends_with(".path") || key.ends_with("_path");
            let is_known = found.0.iter().any(|(known, ..)| *known == key);
            if let Some(Value::Text(path)) = tree.value(&key).filter(|_| is_path && !is_known) {
                found.add(&key, "file", vec![PathBuf::from(path)]);
            }
        }
        found.0.retain(|(_, _, files)| !files.is_empty() && files.iter().all(|file| file.is_file()));
        found
    }

    fn add(&mut self, key: &str, what: &'static str, files: Vec<PathBuf>) {
        match self.0.last_mut().filter(|(known, ..)| known == key) {
            Some((_, _, known)) => known.extend(files),
            None => self.0.push((key.to_owned(), what, files)),
        }
    }

    /// Computes the checksums for a dry run if the run would resume from a checkpoint.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn checksums_to_resume(&self, keys: &ResumeKeys) -> Result<Sources> {
        if likely_checkpoint(keys).is_some() { self.checksums() } else { Ok(Sources::default()) }
    }

    /// Computes the checksums.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn checksums(&self) -> Result<Sources> {
        // A critic usually has the policy's files.
        let mut known: Vec<(&[PathBuf], String)> = Vec::new();
        let mut sources = Sources::default();
        for (key, what, files) in &self.0 {
            let text = match known.iter().find(|(same, _)| *same == files.as_slice()) {
                Some((_, text)) => text.clone(),
                None => checksum(files).with_context(|| key.clone())?,
            };
            known.push((files, text.clone()));
            sources.0.insert(key.clone(), format!("{what} {text}"));
        }
        Ok(sources)
    }
}

/// Lists the files of a model: its shape and its weights.
fn model_files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, |name| name == "config.json" || name.starts_with("model") && name.ends_with(".safetensors"))
}

/// Returns the checksum of a model with its weights, equal to that of `NamedFiles::checksums` for a setting that names the
/// model.
///
/// # Errors
/// If a file cannot be read.
pub fn of_model(folder: &Path) -> Result<String> {
    Ok(format!("{MODEL} {}", checksum(&model_files(folder))?))
}

/// Lists the files of a folder that are needed, by name.
fn files_of(folder: &Path, is_source: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_needed = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_source) && path.is_file();
    let mut files: Vec<PathBuf> = entries.filter(is_needed).collect();
    files.sort();
    files
}
