//! The call of a command of another library inside the words of a program, and what its launcher says.

use std::collections::BTreeSet;

/// A call of one of the library's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainerCall {
    /// The stage, as the library names it; empty if the words do not say.
    pub stage: String,
    /// The index of the first word after the name of the command.
    pub rest: usize,
    /// The script that is run, if it is not one of the library's own.
    pub script: Option<String>,
}

/// What a launcher says of the processes it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchInfo {
    /// The number of processes; `None` if the words do not say.
    pub processes: Option<usize>,
    /// True if a launcher starts the command.
    pub is_launched: bool,
    /// Flags of the launcher inside the words of the command, with their values, by index.
    pub own: BTreeSet<usize>,
}

/// Returns the value of a flag, as the next word or after `=`; dashes and underscores are the same.
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
