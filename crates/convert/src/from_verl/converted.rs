//! The input and the result of a conversion from verl.

use crate::shell::{Launch, ShellEnv, Unknown};
use burnish_config::compat::{Ignored, Kind, Renamed};
use burnish_hydra::Node;

/// A command or script of verl to convert.
pub struct VerlSource<'a> {
    pub text: &'a str,
    /// Environment of the script; its name is the path of the script, or `command`.
    pub env: ShellEnv<'a>,
    /// One of [`EDITIONS`](burnish_config::compat::editions::EDITIONS); `None` chooses the better of 2026-01 and 2026-08.
    pub edition: Option<&'a str>,
    /// Program of verl whose keys the command's own program takes, such as `main_ppo`; `None` if the words show it.
    pub program: Option<&'a str>,
}

/// A converted command of verl.
#[derive(Debug, Clone)]
pub struct VerlConversion {
    pub kind: Kind,
    /// Edition whose keys and defaults were used.
    pub edition: &'static str,
    /// Subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
    /// Built-in file with verl's defaults, for `--config`.
    pub preset: String,
    /// Overrides as written, without the overrides of Hydra itself.
    pub overrides: Vec<String>,
    /// Text of the recipe file.
    pub recipe: String,
    pub renamed: Vec<Renamed>,
    pub ignored: Vec<Ignored>,
    /// Unsupported settings, which the recipe comments out.
    pub blocked: Vec<Blocked>,
    /// Number of keys that the edition lacks.
    pub(crate) unknown_keys: usize,
    /// Settings that the command changes.
    pub settings: Node,
    /// Other launches of the script, which were not converted.
    pub further: Vec<Launch>,
    /// Values that depend on a real run of the script; the recipe asks the user to set them.
    pub unknowns: Vec<Unknown>,
    /// Notes about the words of the command, such as unset variables and blank words.
    pub notes: Vec<String>,
    /// Unknown words, which may be further overrides.
    pub unknown_words: Vec<Unknown>,
}

/// An unsupported part of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    /// Key of the setting; empty for the program itself.
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

/// Returns the text that stands for an unknown during the conversion.
pub(super) fn placeholder(unknown: usize) -> String {
    format!("SET_ME_{unknown}_")
}

/// Replaces the texts that stand for unknowns by `…`.
pub(super) fn without_placeholders(text: &str) -> String {
    let mut parts = text.split("SET_ME_");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |shown, part| shown + "…" + part.split_once('_').map_or("", |(_, rest)| rest))
}

/// Beginning of the advice that names a similar key.
pub(super) const MEANT: &str = "did you mean ";
