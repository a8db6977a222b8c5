//! Names on Hugging Face's Hub in the settings: each becomes files before anything is read, so that the rest of the program sees
//! folders and files alone. The settings, which the run and its checkpoints record, get the name with its commit.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::config::schema::{Location, Place, Schema, Thing};
use crate::config::{ConfigError, Loaded, Problem, Tree, Value};
use crate::hub::{Failure, Found, Hub, HubName, Kind, ModelParts, Purpose};

/// The use of the models' weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// They are loaded.
    Loaded,
    /// They are compared where they are there, and not downloaded: a dry run.
    Compared,
}

/// Finds or downloads whatever the settings name on the Hub.
///
/// # Errors
/// A name that cannot be had, with its key and place, and what to do.
pub fn find<T: Schema>(loaded: &mut Loaded<T>, weights: Weights) -> Result<(), ConfigError> {
    let (config, tree) = (&mut loaded.config, &mut loaded.tree);
    let mut hub = None;
    for place in config.places() {
        let of_node = |problem: Problem| {
            let node = tree.root().get(&place.key).or_else(|| tree.root().get(place.key.rsplit_once('.')?.0));
            node.into_iter().fold(problem, Problem::with_value)
        };
        let key = key_of(tree, &place.key);
        let wrong = |error| of_node(Problem::new(&key, format!("`{key}`: {error}")));
        let kind = kind(place.thing);
        let name = HubName::of(place.location, kind).map_err(|error| wrong(format!("{error:#}")))?;
        let Some(name) = name else { continue };
        let found = hub_of(&mut hub).and_then(|hub| get(hub, &name, place.thing, weights));
        let found = found.map_err(|Failure { message, help, .. }| {
            let problem = wrong(format!("{}{message}", no_path(place.location)));
            if help.is_empty() { problem } else { problem.help(help) }
        })?;
        note(&key, &name, place.thing, &found);
        tree.set(&key, Value::Text(found.name.address()));
        put(place, found);
    }
    Ok(())
}

/// The folder of a model that is named on the command line: a path, or a name on the Hub.
///
/// # Errors
/// A name that cannot be had, with the option.
pub fn model_folder(option: &str, folder: &Path) -> Result<PathBuf> {
    let Some(text) = folder.to_str() else { return Ok(folder.to_owned()) };
    let Some(name) = HubName::of(text, Kind::Model).context(option.to_owned())? else { return Ok(folder.to_owned()) };
    let found = Hub::of_process().and_then(|hub| hub.model(&name, ModelParts::Whole));
    let found = found.map_err(|failure| anyhow::anyhow!("{option}: {}{failure}", no_path(text)))?;
    Ok(found.paths.into_iter().next().unwrap_or_default())
}

fn hub_of(hub: &mut Option<Hub>) -> Result<&Hub, Failure> {
    match hub {
        Some(hub) => Ok(hub),
        none => Ok(none.insert(Hub::of_process()?)),
    }
}

fn kind(thing: Thing) -> Kind {
    match thing {
        Thing::Model { .. } | Thing::Tokenizer | Thing::Adapter => Kind::Model,
        Thing::TrainingData | Thing::ValidationData | Thing::Data => Kind::Dataset,
    }
}

fn get(hub: &Hub, name: &HubName, thing: Thing, weights: Weights) -> Result<Found, Failure> {
    match thing {
        Thing::Model { weights: true } if weights == Weights::Loaded => hub.model(name, ModelParts::Whole),
        Thing::Model { .. } => hub.model(name, ModelParts::WithoutWeights),
        Thing::Tokenizer => hub.model(name, ModelParts::Tokenizer),
        Thing::Adapter => hub.model(name, ModelParts::Adapter),
        Thing::TrainingData => hub.data(name, Purpose::Training),
        Thing::ValidationData => hub.data(name, Purpose::Validation),
        Thing::Data => hub.data(name, Purpose::Reading),
    }
}

/// The key of a value: of a list that is written without brackets, the list's own.
fn key_of(tree: &Tree, key: &str) -> String {
    match (tree.value(key), key.rsplit_once('.')) {
        (None, Some((list, _))) => list.to_owned(),
        _ => key.to_owned(),
    }
}

fn put(place: Place, found: Found) {
    *place.location = Location::found(&found.name.address(), found.paths, found.left_out > 0);
}

/// Says what a name was taken for, where it left a choice.
fn note(key: &str, name: &HubName, thing: Thing, found: &Found) {
    if !found.because.is_empty() {
        tracing::info!("{key}: {name} is {} ({})", found.name.rest, found.because);
    }
    if found.left_out > 0 && thing == (Thing::Model { weights: true }) {
        tracing::info!("{key}: the weights of {name} are not in the cache, and not checked");
    }
}

/// The beginning of a message about what is no path either.
fn no_path(text: &str) -> String {
    if text.starts_with("hf://") { String::new() } else { format!("no `{text}` is here, and ") }
}
