//! Calls, errors, and words with unknowns.

/// A program that a script would start, with its words, and the line at which the call begins, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCall {
    pub line: usize,
    pub words: Vec<String>,
}

/// A part of a script that cannot be read, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    pub line: usize,
    pub message: String,
}

/// A value that cannot be known without running the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub line: usize,
    /// What is missing, as a sentence.
    pub message: String,
    /// True for a variable or an argument that is not set: bash takes it as empty.
    pub is_unset: bool,
}

/// The character env the number of a unknown inside a word; a shell has no such character in its words.
const MARK: char = '\0';

/// Returns the text that stands for a unknown inside a word.
pub fn mark(index: usize) -> String {
    format!("{MARK}{index}{MARK}")
}

/// True if a text has no unknown.
pub fn is_known(text: &str) -> bool {
    !text.contains(MARK)
}

/// Returns the numbers of the unknowns in a text.
pub fn unknowns_in(text: &str) -> Vec<usize> {
    text.split(MARK).skip(1).step_by(2).filter_map(|number| number.parse().ok()).collect()
}

/// Replaces every unknown of a text.
pub fn replace_unknowns(text: &str, with: &dyn Fn(usize) -> String) -> String {
    let parts = text.split(MARK).enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part.to_string() } else { part.parse().map(with).unwrap_or_default() }).collect()
}

/// Returns a text without its backslashes at ends of lines and these ends, which a here-document leaves out.
pub fn joined_lines(text: &str) -> String {
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

/// Returns the beginning of a text, for a message.
pub fn short(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    if start.len() < text.len() { start + "…" } else { start }
}
