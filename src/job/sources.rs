//! Checksums of what the settings of a run name: models, tokenizers, adapters, training rows and Python files. A resumed run compares
//! them with those of its checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::resume::likely_checkpoint;
use burnish_checkpoint::Sources;
use burnish_config::schema::{ResumeKeys, Schema, Thing};
use burnish_config::{Tree, Value};
use burnish_util::content::checksum;

/// The setting of a tokenizer, and that of the model that has it otherwise.
const TOKENIZERS: &[(&str, &str)] = &[("data.tokenizer", "actor_rollout_ref.model.path"), ("model.tokenizer_path", "model.path")];
/// The files of a tokenizer that decide what ids a text has, and the others, such as those of chat templates.
const IDS: &[&str] = &["tokenizer.json"];
const TEMPLATES: &[&str] =
    &["tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "chat_template.jinja", "chat_template.json"];
/// The word before the checksum of a model with its weights.
const MODEL: &str = "model";
/// The name of the second part of a tokenizer, behind its key.
const TEMPLATE: &str = "(chat template and special tokens)";

/// The files that settings name: the key, a word for the part of the thing that they are, and the files.
pub struct NamedFiles(Vec<(String, &'static str, Vec<PathBuf>)>);

impl NamedFiles {
    /// Lists what the settings name, as far as it is there: what is not there is missed by what reads it.
    pub fn of<T: Schema>(config: &mut T, tree: &Tree) -> Self {
        let mut found = Self(Vec::new());
        let mut folders = Vec::new();
        for place in config.places() {
            let (key, location) = (place.key, place.location);
            let folder = location.as_path();
            match place.thing {
                Thing::Model { weights } => {
                    match weights && !location.lacks_weights() {
                        true => found.add(&key, MODEL, model_files(folder)),
                        false => found.add(&key, "shape", files_of(folder, |name| name == "config.json")),
                    }
                    folders.push((key, folder.to_owned()));
                }
                Thing::Adapter => found.add(&key, "adapter", files_of(folder, |name| name.starts_with("adapter_"))),
                Thing::Tokenizer => folders.push((key, folder.to_owned())),
                // The items of a list are one setting, and their order counts.
                Thing::TrainingData => found.add(key.rsplit_once('.').map_or(&key, |(list, _)| list), "rows", location.paths()),
                // Validation compares its rows themselves.
                Thing::ValidationData | Thing::Data => {}
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

    /// Reads the files for a dry run, which needs them where the run would go on from a checkpoint.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn checksums_to_resume(&self, keys: &ResumeKeys) -> Result<Sources> {
        if likely_checkpoint(keys).is_some() { self.checksums() } else { Ok(Sources::default()) }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn checksums(&self) -> Result<Sources> {
        // A critic is of the policy's files as a rule.
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

/// The files that make a model: its shape and its weights.
fn model_files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, |name| name == "config.json" || name.starts_with("model") && name.ends_with(".safetensors"))
}

/// The checksum of a model with its weights, as [`NamedFiles::checksums`] has it of a setting that names the model.
///
/// # Errors
/// A file that cannot be read.
pub fn of_model(folder: &Path) -> Result<String> {
    Ok(format!("{MODEL} {}", checksum(&model_files(folder))?))
}

/// The wanted files of a folder, by name.
fn files_of(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted) && path.is_file();
    let mut files: Vec<PathBuf> = entries.filter(is_wanted).collect();
    files.sort();
    files
}
