//! The words that result from the expansion of one word.

use super::budget::{ELEMENT, TextBudget};

/// A builder of words.
pub(super) struct Fields {
    /// The budget that pays for the words.
    budget: TextBudget,
    done: Vec<String>,
    current: Option<String>,
    /// Markers of unquoted unset variables since the last word. They begin the next word, and do not make a word alone.
    nothing: String,
}

impl Fields {
    pub(super) fn new(budget: &TextBudget) -> Self {
        Self { budget: budget.clone(), done: vec![], current: None, nothing: String::new() }
    }

    /// Appends to the current word. Even an empty text starts a word.
    pub(super) fn push(&mut self, text: &str) {
        if self.budget.take(text.len()).is_none() {
            return;
        }
        let nothing = std::mem::take(&mut self.nothing);
        let current = self.current.get_or_insert_default();
        current.push_str(&nothing);
        current.push_str(text);
    }

    /// Appends the marker of an unquoted unset variable.
    pub(crate) fn push_nothing(&mut self, mark: &str) {
        if self.budget.take(mark.len()).is_some() {
            self.current.as_mut().unwrap_or(&mut self.nothing).push_str(mark);
        }
    }

    /// Ends the current word.
    pub(super) fn end(&mut self) {
        if let Some(word) = self.current.take().filter(|_| self.budget.take(ELEMENT).is_some()) {
            self.done.push(word);
        }
        self.nothing.clear();
    }

    /// Appends an unquoted value, split at runs of blanks and at every other character of `IFS`.
    pub(super) fn split(&mut self, text: &str, separators: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| separators.contains(c)) {
            if at > 0 {
                self.push(&rest[..at]);
            }
            rest = &rest[at..];
            let blanks = |rest: &str| rest.len() - rest.trim_start_matches(|c| is_blank(c) && separators.contains(c)).len();
            let skipped = blanks(rest);
            rest = &rest[skipped..];
            if let Some(c) = rest.chars().next().filter(|c| separators.contains(*c)) {
                if skipped == 0 {
                    self.push("");
                }
                rest = &rest[c.len_utf8()..];
                rest = &rest[blanks(rest)..];
            }
            self.end();
        }
        if !rest.is_empty() {
            self.push(rest);
        }
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        self.end();
        self.done
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// The handling of values in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionMode {
    /// Splits values into words.
    Split,
    /// Keeps values whole, as in double quotes; only `"$@"` becomes several words.
    Quoted,
    /// Keeps everything in one word, as after `NAME=`.
    Whole,
}
