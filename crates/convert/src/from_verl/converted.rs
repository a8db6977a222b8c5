//! A command of verl, before and after its conversion.

use crate::shell::{ShellEnv, Unknown};
use burnish_config::compat::{Ignored, Kind, Renamed};
use burnish_hydra::Node;

/// The text to convert.
pub struct VerlSource<'a> {
    pub text: &'a str,
    /// What the script finds when it starts. Its name is the path of the script, or `command`.
    pub env: ShellEnv<'a>,
    /// One of [`EDITIONS`](burnish_config::compat::editions::EDITIONS); `None` stands for the first of 2026-01 and 2026-08 that fits the command.
    pub edition: Option<&'a str>,
}

/// A command of verl, converted.
#[derive(Debug, Clone)]
pub struct VerlConversion {
    pub kind: Kind,
    /// The edition whose keys and defaults were used.
    pub edition: &'static str,
    /// The subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
    /// The built-in file with verl's defaults, for `--config`.
    pub preset: String,
    /// The overrides as they were written, without those of Hydra itself.
    pub overrides: Vec<String>,
    /// The recipe file.
    pub recipe: String,
    pub renamed: Vec<Renamed>,
    pub ignored: Vec<Ignored>,
    /// What the command needs and is not here: the recipe has it commented out.
    pub blocked: Vec<Blocked>,
    /// The number of keys that the edition lacks.
    pub unknown_keys: usize,
    /// The settings that the command changes.
    pub settings: Node,
    /// Lines of the text with other commands of verl, which were not converted.
    pub further: Vec<usize>,
    /// Values that only a run of the script could tell; the recipe has an environment variable for those that it needs.
    pub unknowns: Vec<Unknown>,
    /// Advice about the words of the command: variables that are not set, words that are blank.
    pub notes: Vec<String>,
    /// Words of the command that cannot be known, and may be further overrides.
    pub unknown_words: Vec<Unknown>,
}

/// A part of a command that cannot be had here.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    /// The key; empty for the program itself.
    pub key: String,
    pub value: String,
    pub reason: String,
}

impl Blocked {
    /// Returns the part of the command and the reason, on one line.
    pub fn line(&self) -> String {
        let Self { key, value, reason } = self;
        if key.is_empty() { reason.clone() } else { format!("{key}={value}: {reason}") }
    }
}

/// Returns the text that stands for a unknown of the script while its command is converted.
pub fn placeholder(unknown: usize) -> String {
    format!("SET_ME_{unknown}_")
}
