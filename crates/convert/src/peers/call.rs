//! The call of another library's command among the words of a program, and the options of its launcher.

use std::collections::BTreeSet;

/// A call of one of the library's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainerCall {
    /// The library's name of the stage; empty if the words do not name one.
    pub stage: String,
    /// Index of the first word after the name of the command.
    pub rest: usize,
    /// Python script of the command, if it is not one of the library's own.
    pub script: Option<String>,
}

/// The options of a launcher about its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchInfo {
    /// Number of processes; `None` if the words do not contain it.
    pub processes: Option<usize>,
    /// True if a launcher starts the command.
    pub(crate) is_launched: bool,
    /// Indices of the launcher's flags and their values among the words of the command.
    pub words: BTreeSet<usize>,
}

/// Returns the value of a flag, from the next word or after `=`. Dashes equal underscores.
pub fn flag<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    let is = |word: &str| names.contains(&word.trim_start_matches('-').replace('-', "_").as_str()) && word.starts_with('-');
    words.iter().enumerate().find_map(|(at, word)| match word.split_once('=') {
        Some((name, value)) if is(name) => Some(value),
        _ if is(word) => words.get(at + 1).map(String::as_str),
        _ => None,
    })
}

/// Returns the last part of a path or module, without `.py`.
pub fn stem(word: &str) -> &str {
    let word = word.rsplit('/').next().unwrap_or_default();
    word.strip_suffix(".py").unwrap_or_else(|| word.rsplit('.').next().unwrap_or_default())
}
