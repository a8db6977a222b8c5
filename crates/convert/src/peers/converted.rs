//! The result of a conversion from another library.

use burnish_config::compat::{Ignored, Kind};

/// A value that the user must set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingValue {
    pub key: String,
    /// Description of the missing value.
    pub message: String,
}

/// An option with an unsupported value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOption {
    /// Option with its value.
    pub option: String,
    pub reason: String,
}

impl RefusedOption {
    /// Returns the option and the reason, on one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.option, self.reason)
    }
}

/// A converted command of another library.
#[derive(Debug)]
pub struct PeerConversion {
    /// The library's name of the command.
    pub trainer: &'static str,
    pub kind: Kind,
    /// Release whose defaults were used.
    pub edition: &'static str,
    /// Reason for this release.
    pub why: String,
    /// Subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
    /// Built-in configuration that the recipe changes.
    pub preset: &'static str,
    /// Settings as overrides, without missing values.
    pub overrides: Vec<String>,
    /// Text of the recipe file.
    pub recipe: String,
    pub ignored: Vec<Ignored>,
    pub refused: Vec<RefusedOption>,
    /// Differences of the run from the library's.
    pub differences: Vec<String>,
    pub notes: Vec<String>,
    pub missing: Vec<MissingValue>,
}
