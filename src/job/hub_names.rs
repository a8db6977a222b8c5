//! Names on Hugging Face's Hub in the settings. Each becomes files before anything is read, so the rest of the program sees only
//! folders and files. The recorded settings get the name with its commit.
//!
//! Weights, most of a model's bytes, come last: after every check that works without them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use burnish_config::schema::{Location, LocationKind, LocationSetting, Schema};
use burnish_config::{ConfigError, Loaded, Node, Problem, Tree, Value};
use burnish_hub::{Hub, HubError, HubFiles, HubName, ModelParts, Purpose, RepoKind};

/// The models on the Hub whose weights will be loaded and may still be missing.
#[must_use = "the weights are still missing"]
pub struct Weights(Vec<MissingWeights>);

/// A setting that names a model on the Hub.
struct HubSetting {
    /// Key of the place in the settings.
    place: String,
    /// Key that the user knows, and the value there.
    key: String,
    node: Option<Node>,
    /// Text that was read as a name.
    text: String,
    name: HubName,
}

struct MissingWeights {
    setting: HubSetting,
    is_missing: bool,
}

impl HubSetting {
    fn problem(&self, message: &str) -> Problem {
        self.node.iter().fold(Problem::new(&self.key, format!("`{}`: {message}", self.key)), Problem::with_value)
    }

    fn failed(&self, HubError { message, help, .. }: HubError) -> Problem {
        let problem = self.problem(&format!("{}{message}", no_path(&self.text)));
        if help.is_empty() { problem } else { problem.help(help) }
    }
}

impl Weights {
    /// Returns true if some weights are missing.
    pub(crate) fn are_missing(&self) -> bool {
        self.0.iter().any(|wanted| wanted.is_missing)
    }

    /// Downloads the missing weights.
    ///
    /// # Errors
    /// If weights cannot be downloaded, with the key and its place.
    pub fn fetch<T: Schema>(self, config: &mut T) -> Result<(), ConfigError> {
        let mut hub = None;
        for MissingWeights { setting, .. } in self.0 {
            let found = hub_of(&mut hub).and_then(|hub| hub.model(&setting.name, ModelParts::Whole));
            let found = found.map_err(|error| setting.failed(error))?;
            if let Some(place) = config.locations().into_iter().find(|place| place.key == setting.place) {
                put(place, found);
            }
        }
        Ok(())
    }

    /// Reports which weights are missing and stay unchecked, for a dry run.
    pub fn leave(self) {
        for MissingWeights { setting: HubSetting { key, name, .. }, .. } in self.0.iter().filter(|wanted| wanted.is_missing) {
            tracing::info!("{key}: the weights of {name} are not in the cache and were not checked");
        }
    }
}

/// Finds or downloads everything that the settings name on the Hub, except missing weights, which it returns.
///
/// # Errors
/// If a name cannot be found, with its key, its place and the remedy.
pub fn find<T: Schema>(loaded: &mut Loaded<T>) -> Result<Weights, ConfigError> {
    let (config, tree) = (&mut loaded.config, &mut loaded.tree);
    let (mut hub, mut weights) = (None, Vec::new());
    for place in config.locations() {
        let node = tree.root().get(&place.key).or_else(|| tree.root().get(place.key.rsplit_once('.')?.0));
        let key = key_of(tree, &place.key);
        let wrong =
            |error: anyhow::Error| node.into_iter().fold(Problem::new(&key, format!("`{key}`: {error:#}")), Problem::with_value);
        let name = HubName::from_setting(place.location, kind(place.kind)).map_err(wrong)?;
        let Some(name) = name else { continue };
        let (text, node) = (place.location.to_string(), node.cloned());
        let setting = HubSetting { place: place.key.clone(), key, node, text, name };
        let found = hub_of(&mut hub).and_then(|hub| get(hub, &setting.name, place.kind));
        let found = found.map_err(|error| setting.failed(error))?;
        if !found.choice.is_empty() {
            tracing::info!("{}: {} is {} ({})", setting.key, setting.name, found.name.rest, found.choice);
        }
        tree.set(&setting.key, Value::Text(found.name.address()));
        let (is_missing, thing) = (found.left_out > 0, place.kind);
        put(place, found);
        if thing == (LocationKind::Model { weights: true }) {
            weights.push(MissingWeights { setting, is_missing });
        }
    }
    Ok(Weights(weights))
}

/// A model named on the command line: a path, or a name on the Hub.
pub struct NamedModel {
    option: &'static str,
    /// Path or name as written.
    text: String,
    folder: PathBuf,
    name: Option<HubName>,
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
        let name = if text.is_empty() { None } else { HubName::from_setting(&text, RepoKind::Model).context(option)? };
        let mut model = Self { option, text, folder: folder.to_owned(), name };
        model.get(parts)?;
        Ok(model)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Downloads missing weights.
    ///
    /// # Errors
    /// If weights cannot be downloaded, with the option.
    pub(crate) fn fetch_weights(&mut self) -> Result<()> {
        self.get(ModelParts::Whole)
    }

    fn get(&mut self, parts: ModelParts) -> Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let found = Hub::from_env().and_then(|hub| hub.model(name, parts));
        let found = found.map_err(|error| anyhow::anyhow!("{}: {}{error}", self.option, no_path(&self.text)))?;
        self.folder = found.paths.into_iter().next().unwrap_or_default();
        Ok(())
    }
}

/// Returns the folder of a whole model named on the command line: a path, or a name on the Hub.
///
/// # Errors
/// If a name cannot be found, with the option.
pub(crate) fn model_folder(option: &'static str, folder: &Path) -> Result<PathBuf> {
    Ok(NamedModel::with(option, folder, ModelParts::Whole)?.folder)
}

fn hub_of(hub: &mut Option<Hub>) -> Result<&Hub, HubError> {
    match hub {
        Some(hub) => Ok(hub),
        none => Ok(none.insert(Hub::from_env()?)),
    }
}

fn kind(thing: LocationKind) -> RepoKind {
    match thing {
        LocationKind::Model { .. } | LocationKind::Tokenizer | LocationKind::Adapter => RepoKind::Model,
        LocationKind::TrainingData | LocationKind::ValidationData | LocationKind::Data => RepoKind::Dataset,
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
        LocationKind::Data => hub.data(name, Purpose::Reading),
    }
}

/// Returns the key of a value; for an item of a list written without brackets, the key of the list.
fn key_of(tree: &Tree, key: &str) -> String {
    match (tree.value(key), key.rsplit_once('.')) {
        (None, Some((list, _))) => list.to_owned(),
        _ => key.to_owned(),
    }
}

fn put(place: LocationSetting, found: HubFiles) {
    *place.location = Location::found(&found.name.address(), found.paths, found.left_out > 0);
}

/// Returns the beginning of a message about a text that is not a path either.
fn no_path(text: &str) -> String {
    if text.starts_with("hf://") { String::new() } else { format!("no `{text}` is here, and ") }
}
