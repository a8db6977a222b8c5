//! Names in the settings that become files before any file is read: built-in files, names on Hugging Face's Hub, and runs or
//! checkpoints in place of models. The rest of the program sees only folders and files. The recorded settings get the name with
//! its commit, or the checkpoint.
//!
//! Weights, most of a model's bytes, come last: after every check that works without them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::built_in;
use super::hub_model::{folder_of, name_of, no_path};
use super::saved_model::{ACTOR, CRITIC, SavedModel};
use burnish_config::schema::{Location, LocationKind, LocationSetting, Schema};
use burnish_config::{ConfigError, Loaded, Node, Problem, Tree, Value};
use burnish_hub::{Hub, HubError, HubFiles, HubName, ModelParts, Purpose, RepoKind};

/// The models on the Hub and in checkpoints whose weights will be loaded and may still be missing.
#[must_use = "the weights are still missing"]
pub struct Weights(Vec<MissingWeights>);

/// A setting that names a model on the Hub or a checkpoint.
struct NamedSetting {
    /// Key of the place in the settings.
    place: String,
    /// Key that the user knows, and its value.
    key: String,
    node: Option<Node>,
    /// Text that was read as a name.
    text: String,
}

/// The source of a model's weights.
enum Source {
    Hub(HubName),
    Saved(SavedModel),
}

struct MissingWeights {
    setting: NamedSetting,
    source: Source,
    is_missing: bool,
}

impl NamedSetting {
    fn problem(&self, message: &str) -> Problem {
        self.node.iter().fold(Problem::new(&self.key, format!("`{}`: {message}", self.key)), Problem::with_value)
    }

    fn failed(&self, HubError { message, help, .. }: HubError) -> Problem {
        let problem = self.problem(&format!("{}{message}", no_path(&self.text)));
        if help.is_empty() { problem } else { problem.help(help) }
    }

    fn wrong(&self, error: &anyhow::Error) -> Problem {
        self.problem(&format!("{error:#}"))
    }
}

impl Weights {
    /// Returns true if some weights are missing.
    pub(crate) fn are_missing(&self) -> bool {
        self.0.iter().any(|missing| missing.is_missing)
    }

    /// Downloads the missing weights, merges adapters, and compares saved weights with their checksums.
    ///
    /// # Errors
    /// If weights cannot be downloaded or are damaged, with the key and its place.
    pub fn fetch<T: Schema>(self, config: &mut T) -> Result<(), ConfigError> {
        let mut hub = None;
        for MissingWeights { setting, source, .. } in self.0 {
            let found = match &source {
                Source::Hub(name) => {
                    let found = hub_of(&mut hub).and_then(|hub| hub.model(name, ModelParts::Whole));
                    location(found.map_err(|error| setting.failed(error))?)
                }
                Source::Saved(saved) => {
                    let folder = saved.full_model().map_err(|error| setting.wrong(&error))?;
                    Location::resolved(&saved.checkpoint.to_string_lossy(), vec![folder], false)
                }
            };
            if let Some(place) = config.locations().into_iter().find(|place| place.key == setting.place) {
                *place.location = found;
            }
        }
        Ok(())
    }

    /// Reports which weights are missing and stay unchecked, for a dry run.
    pub fn leave(self) {
        for MissingWeights { setting, source, .. } in self.0.iter().filter(|missing| missing.is_missing) {
            let key = &setting.key;
            match source {
                Source::Hub(name) => tracing::info!("{key}: the weights of {name} are not in the cache and were not checked"),
                Source::Saved(saved) => tracing::info!(
                    "{key}: a run merges the adapter in {} into its base model; the weights were not checked",
                    saved.part.display()
                ),
            }
        }
    }
}

/// Finds or downloads everything that the settings name among built-in files, on the Hub or in runs, except missing weights,
/// which it returns.
///
/// # Errors
/// If a name cannot be found, with its key, its place and the remedy.
pub fn find<T: Schema>(loaded: &mut Loaded<T>) -> Result<Weights, ConfigError> {
    let (config, tree) = (&mut loaded.config, &mut loaded.tree);
    let (mut hub, mut weights) = (None, Vec::new());
    for place in config.locations() {
        let node = tree.root().get(&place.key).or_else(|| tree.root().get(place.key.rsplit_once('.')?.0)).cloned();
        let (key, text) = (key_of(tree, &place.key), place.location.to_string());
        let setting = NamedSetting { place: place.key.clone(), key, node, text };
        // The settings keep the name, which is the same with and without the repository's files.
        if let Some(path) = built_in::find(place.location.as_path()).map_err(|error| setting.wrong(&error))? {
            *place.location = Location::resolved(&setting.text, vec![path], false);
            continue;
        }
        let reads_weights = place.kind == (LocationKind::Model { weights: true });
        let saved = saved_model(&place).map_err(|error| setting.wrong(&error))?;
        let (recorded, found, source) = match saved {
            Some((saved, found)) => {
                if let Some(description) = saved.description() {
                    tracing::info!("{}: {description}", setting.key);
                }
                (saved.checkpoint.to_string_lossy().into_owned(), found, Source::Saved(saved))
            }
            None => {
                let Some(kind) = repo_kind(place.kind) else { continue };
                let name = HubName::from_setting(place.location, kind).map_err(|error| setting.wrong(&error))?;
                let Some(name) = name else { continue };
                let found = hub_of(&mut hub).and_then(|hub| get(hub, &name, place.kind));
                let found = found.map_err(|error| setting.failed(error))?;
                if !found.choice.is_empty() {
                    tracing::info!("{}: {name} is {} ({})", setting.key, found.name.rest, found.choice);
                }
                (found.name.address(), location(found), Source::Hub(name))
            }
        };
        tree.set(&setting.key, Value::Text(recorded));
        let is_missing = found.lacks_weights();
        *place.location = found;
        if reads_weights {
            weights.push(MissingWeights { setting, source, is_missing });
        }
    }
    Ok(Weights(weights))
}

/// Returns the model in a checkpoint that a setting names, and its folder. A critic prefers a critic.
fn saved_model(place: &LocationSetting) -> Result<Option<(SavedModel, Location)>> {
    let LocationSetting { key, kind, location } = place;
    let first = if key.starts_with("critic.") { CRITIC } else { ACTOR };
    let find = || SavedModel::find(location.as_path(), first);
    let (saved, folder, lacks_weights) = match kind {
        LocationKind::TrainingData | LocationKind::ValidationData | LocationKind::Data | LocationKind::File => return Ok(None),
        LocationKind::Model { .. } | LocationKind::Tokenizer => {
            let Some(saved) = find()? else { return Ok(None) };
            let (folder, lacks_weights) = (saved.folder(), saved.is_adapter());
            (saved, folder, lacks_weights)
        }
        LocationKind::Adapter => {
            let Some(saved) = find()? else { return Ok(None) };
            let folder = saved.adapter()?;
            (saved, folder, false)
        }
    };
    let found = Location::resolved(&saved.checkpoint.to_string_lossy(), vec![folder], lacks_weights);
    Ok(Some((saved, found)))
}

/// A model named on the command line: a path, a built-in folder, a run, a checkpoint, or a name on the Hub.
pub struct NamedModel {
    option: &'static str,
    /// Path or name as written.
    text: String,
    folder: PathBuf,
    source: Option<Source>,
}

impl NamedModel {
    /// Finds the model; from the Hub, everything but the weights.
    ///
    /// # Errors
    /// If a name cannot be found, with the option.
    pub fn find(option: &'static str, folder: &Path) -> Result<Self> {
        Self::with(option, folder, ModelParts::WeightsLater)
    }

    /// Finds the tokenizer of a model.
    ///
    /// # Errors
    /// Like [`Self::find`].
    pub fn tokenizer(option: &'static str, folder: &Path) -> Result<PathBuf> {
        Ok(Self::with(option, folder, ModelParts::Tokenizer)?.folder)
    }

    fn with(option: &'static str, folder: &Path, parts: ModelParts) -> Result<Self> {
        let text = folder.to_str().unwrap_or_default().to_owned();
        if let Some(folder) = built_in::find(folder).context(option)? {
            return Ok(Self { option, text, folder, source: None });
        }
        if let Some(saved) = SavedModel::find(folder, ACTOR).context(option)? {
            if let Some(description) = saved.description() {
                tracing::info!("{option}: {description}");
            }
            return Ok(Self { option, text, folder: saved.folder(), source: Some(Source::Saved(saved)) });
        }
        let name = name_of(option, &text)?;
        let folder = name.as_ref().map_or(Ok(folder.to_owned()), |name| folder_of(option, &text, name, parts))?;
        Ok(Self { option, text, folder, source: name.map(Source::Hub) })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Downloads missing weights, or merges an adapter.
    ///
    /// # Errors
    /// If weights cannot be downloaded or are damaged, with the option.
    pub(crate) fn fetch_weights(&mut self) -> Result<()> {
        match &self.source {
            None => {}
            Some(Source::Hub(name)) => self.folder = folder_of(self.option, &self.text, name, ModelParts::Whole)?,
            Some(Source::Saved(saved)) => self.folder = saved.full_model().context(self.option)?,
        }
        Ok(())
    }
}

/// Returns the folder of a whole model named on the command line: a path, a run, a checkpoint, or a name on the Hub.
///
/// # Errors
/// If a name cannot be found, with the option.
pub(crate) fn model_folder(option: &'static str, folder: &Path) -> Result<PathBuf> {
    let model = NamedModel::with(option, folder, ModelParts::Whole)?;
    match &model.source {
        Some(Source::Saved(saved)) => saved.full_model().context(option),
        _ => Ok(model.folder),
    }
}

fn hub_of(hub: &mut Option<Hub>) -> Result<&Hub, HubError> {
    match hub {
        Some(hub) => Ok(hub),
        none => Ok(none.insert(Hub::from_env()?)),
    }
}

/// Returns the kind of repository on the Hub that may hold such a thing.
fn repo_kind(thing: LocationKind) -> Option<RepoKind> {
    match thing {
        LocationKind::Model { .. } | LocationKind::Tokenizer | LocationKind::Adapter => Some(RepoKind::Model),
        LocationKind::TrainingData | LocationKind::ValidationData | LocationKind::Data => Some(RepoKind::Dataset),
        LocationKind::File => None,
    }
}

fn get(hub: &Hub, name: &HubName, thing: LocationKind) -> Result<HubFiles, HubError> {
    match thing {
        LocationKind::Model { weights: true } => hub.model(name, ModelParts::WeightsLater),
        LocationKind::Model { weights: false } => hub.model(name, ModelParts::WithoutWeights),
        LocationKind::Tokenizer => hub.model(name, ModelParts::Tokenizer),
        LocationKind::Adapter => hub.model(name, ModelParts::Adapter),
        LocationKind::TrainingData => hub.data(name, Purpose::Training),
        LocationKind::ValidationData => hub.data(name, Purpose::Validation),
        LocationKind::Data | LocationKind::File => hub.data(name, Purpose::Reading),
    }
}

/// Returns the key of a value; for an item of a list written without brackets, the key of the list.
fn key_of(tree: &Tree, key: &str) -> String {
    match (tree.value(key), key.rsplit_once('.')) {
        (None, Some((list, _))) => list.to_owned(),
        _ => key.to_owned(),
    }
}

fn location(found: HubFiles) -> Location {
    Location::resolved(&found.name.address(), found.paths, found.left_out > 0)
}
