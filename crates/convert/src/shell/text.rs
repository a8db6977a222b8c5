//! Program calls, errors, and words with unknowns.

/// A program that a script would start, with its words and the first line of the call (from 1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProgramCall {
    pub line: usize,
    pub words: Vec<String>,
}

/// An error in a script, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    pub line: usize,
    pub message: String,
    /// True if the script takes too many steps, as an endless loop.
    pub(crate) is_endless: bool,
}

/// A value that depends on a real run of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub line: usize,
    /// Description of the missing value.
    pub message: String,
    /// True for an unset variable or a missing argument, which bash treats as empty.
    pub is_unset: bool,
}

/// The character around the index of an unknown in a word; words of a shell cannot contain it.
pub(super) const MARK: char = '\0';

/// Returns the marker of an unknown in a word.
pub fn mark(index: usize) -> String {
    format!("{MARK}{index}{MARK}")
}

/// Returns true if a text has no unknowns.
pub(super) fn is_known(text: &str) -> bool {
    !text.contains(MARK)
}

/// Returns the indices of the unknowns in a text.
pub(crate) fn unknowns_in(text: &str) -> Vec<usize> {
    text.split(MARK).skip(1).step_by(2).filter_map(|number| number.parse().ok()).collect()
}

/// Replaces every unknown in a text.
pub fn replace_unknowns(text: &str, with: &dyn Fn(usize) -> String) -> String {
    let parts = text.split(MARK).enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part.to_string() } else { part.parse().map(with).unwrap_or_default() }).collect()
}

/// Joins lines that end in a backslash, as a here-document does.
pub(crate) fn joined_lines(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let next = if c == '\\' { chars.next() } else { None };
        if next != Some('\n') {
            out.extend(std::iter::once(c).chain(next));
        }
    }
    out
}

/// Shortens a text for a message.
pub(super) fn short(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    if start.len() < text.len() { start + "…" } else { start }
}
