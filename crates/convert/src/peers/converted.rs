//! A command of another library, converted.

use burnish_config::compat::{Ignored, Kind};

/// A value that only the user can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingValue {
    pub key: String,
    /// What is missing.
    pub message: String,
}

/// An option that asks for something that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOption {
    /// The option with its value.
    pub option: String,
    pub reason: String,
}

impl RefusedOption {
    /// Returns the option and the reason, on one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.option, self.reason)
    }
}

/// A command of another library, converted.
#[derive(Debug)]
pub struct PeerConversion {
    /// The library's name of the command.
    pub trainer: &'static str,
    pub kind: Kind,
    /// The edition whose defaults were used.
    pub edition: &'static str,
    /// The subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
    /// The built-in file that the recipe changes.
    pub preset: &'static str,
    /// The settings as overrides, without the missing.
    pub overrides: Vec<String>,
    /// The recipe file.
    pub recipe: String,
    pub ignored: Vec<Ignored>,
    pub refused: Vec<RefusedOption>,
    pub notes: Vec<String>,
    pub missing: Vec<MissingValue>,
    /// Lines of the text with other commands of the library, which were not converted.
    pub further: Vec<usize>,
}
