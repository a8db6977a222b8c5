//! A recipe under construction.

use super::call::TrainerCall;
use super::converted::{MissingValue, RefusedOption};
use super::program::ReadProgram;
use super::secrets::shown;
use super::trainer::PeerTrainer;
use super::values::OptionValues;
use burnish_config::compat::Kind;
use burnish_hydra::{Node, Value};
use burnish_util::excerpt::beginning;
use indexmap::IndexMap;

/// A setting of the recipe.
#[derive(Debug, Clone)]
pub struct Setting {
    pub value: Value,
    /// Comment in the recipe: the options that the value comes from.
    pub why: String,
    /// True if the command sets one of these options.
    pub is_set: bool,
}

/// A recipe under construction: the values of the options, and the resulting settings.
pub struct Draft<'a> {
    pub values: OptionValues,
    pub trainer: &'static PeerTrainer,
    pub call: &'a TrainerCall,
    /// Number of processes that the command starts.
    pub processes: usize,
    /// Built-in configuration.
    pub defaults: &'a Node,
    /// Lists the files of a folder. For a file the list has only that file; a missing path is `None`.
    pub files: &'a dyn Fn(&str) -> Option<Vec<String>>,
    pub settings: IndexMap<String, Setting>,
    pub refused: Vec<RefusedOption>,
    /// Differences of the run from the library's; with one, the conversion is not complete.
    pub differences: Vec<String>,
    pub notes: Vec<String>,
    pub missing: Vec<MissingValue>,
    /// The user's own program that the command starts.
    pub program: Option<ReadProgram>,
    /// Options that the program gives without a known value, with the reason.
    pub unknown: IndexMap<&'static str, String>,
}

impl Draft<'_> {
    /// Returns true for a stage other than reinforcement learning.
    pub(crate) fn is_stage(&self) -> bool {
        self.trainer.kind != Kind::Rl
    }

    /// Sets a key; the comment lists the options `names` that the value comes from.
    pub fn set(&mut self, key: &str, value: Value, names: &str) {
        let (why, is_set) = (self.values.source(names), self.values.is_set(names));
        // The name of a run needs no value.
        let unknown = names.split(' ').find_map(|name| self.unknown.get(name)).filter(|_| !key.ends_with("_name"));
        if let Some(message) = unknown.cloned() {
            self.ask_user(key, message);
        }
        self.settings.insert(self.key(key), Setting { value, why, is_set });
    }

    /// Sets a key with its own comment.
    pub(crate) fn set_because(&mut self, key: &str, value: Value, why: impl Into<String>) {
        self.settings.insert(self.key(key), Setting { value, why: why.into(), is_set: true });
    }

    /// Sets a key to the value of an option, unless the value is null.
    pub fn copy(&mut self, key: &str, names: &str) {
        let value = self.values.get(names);
        if value != Value::Null {
            self.set(key, value, names);
        }
    }

    /// Records a key that the user must set.
    pub(crate) fn ask_user(&mut self, key: &str, message: impl Into<String>) {
        let key = self.key(key);
        self.missing.retain(|missing| missing.key != key);
        self.missing.push(MissingValue { key, message: message.into() });
    }

    /// Records an option that is not supported, for a reason.
    pub fn refuse(&mut self, option: &str, reason: impl Into<String>) {
        let value = self.values.get(option);
        let option = option.split(' ').find(|name| self.values.is_set(name)).unwrap_or(option.split(' ').next().unwrap_or(""));
        self.refused
            .push(RefusedOption { option: format!("--{option} {}", beginning(&shown(option, &value))), reason: reason.into() });
    }

    /// Adds a line to the notes at the top of the recipe.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds a difference of the run from the library's; the conversion is then not complete.
    pub fn differ(&mut self, text: impl Into<String>) {
        self.differences.push(text.into());
    }

    /// Returns a key with the section of the stage.
    pub fn key(&self, key: &str) -> String {
        in_section(key, self.is_stage())
    }
}

/// Replaces `@optim`, `@model` and `@actor` in a key by the section of the stage.
pub fn in_section(key: &str, is_stage: bool) -> String {
    let sections = [
        ("@optim", "optim", "actor_rollout_ref.actor.optim"),
        ("@model", "model", "actor_rollout_ref.model"),
        ("@actor", "actor", "actor_rollout_ref.actor"),
    ];
    let put = |key: String, (mark, stage, rl): (&str, &str, &str)| key.replace(mark, if is_stage { stage } else { rl });
    sections.into_iter().fold(key.to_string(), put)
}
