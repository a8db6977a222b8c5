//! A script, and the lines of its text.

/// A script to read.
#[derive(Clone, Copy)]
pub(crate) struct PyScript<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// Words of the command after the name of the script.
    pub words: &'a [String],
}

/// Returns the line of a position in a text, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
