//! A command of verl, before and after its conversion.

use crate::config::compat::{Ignored, Kind, Renamed};
use crate::hydra::Problem;

/// The text to convert.
pub struct Source<'a> {
    /// The name of the text in messages: the path of the script, or `command`.
    pub name: &'a str,
    pub text: &'a str,
    /// One of [`EDITIONS`](crate::config::compat::editions::EDITIONS); `None` stands for the first of 2026-01 and 2026-08 that fits the command.
    pub edition: Option<&'a str>,
    /// Looks up a variable that the script does not set itself.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

/// A command of verl, converted.
#[derive(Debug)]
pub struct Converted {
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
    /// The reasons why a run of the recipe would be refused, as far as verl's keys are concerned.
    pub refused: Vec<Problem>,
    /// Lines of the text with other commands of verl, which were not converted.
    pub further: Vec<usize>,
}
