//! The budget of a script: one counter of bytes for every text that an expansion, a builtin or a predicted program produces.
//!
//! A producer takes bytes before it allocates them. An exceeded budget stays exceeded: no producer writes any more, and the next
//! step of the machine ends the script.

use super::state::{ShellState, Variable};
use std::cell::Cell;
use std::rc::Rc;

/// The limit of all bytes that a script produces.
const MOST: usize = 20_000_000;

/// The limit of bytes in copies of the state that exist at the same time, one for each enclosing subshell and branch.
pub(super) const MAX_COPIES: usize = 60_000_000;

/// Bytes that an element of a list takes with its text.
pub(super) const ELEMENT: usize = 64;

/// The bytes that a script may still produce; `None` once it asked for more. Clones share the counter.
#[derive(Clone)]
pub(super) struct TextBudget(Rc<Cell<Option<usize>>>);

impl TextBudget {
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(Some(MOST))))
    }

    /// Takes bytes before they are allocated; `None` if fewer are left.
    pub(super) fn take(&self, bytes: usize) -> Option<()> {
        let left = self.0.get().and_then(|left| left.checked_sub(bytes));
        self.0.set(left);
        left.map(|_| ())
    }

    /// Copies words; empty if the budget is exceeded.
    pub(super) fn copied(&self, words: &[String]) -> Vec<String> {
        self.take(bytes_of(words)).map_or_else(Vec::new, |()| words.to_vec())
    }
}

/// A text that takes its bytes from a budget before it grows.
pub(super) struct BudgetText<'b> {
    text: String,
    budget: &'b TextBudget,
}

impl<'b> BudgetText<'b> {
    pub(super) fn new(budget: &'b TextBudget) -> Self {
        Self { text: String::new(), budget }
    }

    /// Appends a text; `None` if the budget is exceeded.
    pub(super) fn push(&mut self, text: &str) -> Option<()> {
        self.budget.take(text.len())?;
        self.text.push_str(text);
        Some(())
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Returns the bytes of words.
pub(super) fn bytes_of(words: &[String]) -> usize {
    words.iter().map(|word| word.len() + ELEMENT).sum()
}

impl Variable {
    /// Returns the bytes of the value.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + ELEMENT,
            Self::Array(items) => items.values().map(|item| item.len() + ELEMENT).sum(),
            Self::Map(items) => items.iter().map(|(key, item)| key.len() + item.len() + 2 * ELEMENT).sum(),
        }
    }
}

impl ShellState {
    /// Returns the bytes of a copy of the state.
    pub(super) fn bytes(&self) -> usize {
        let variables = self.variables.iter().map(|(name, value)| name.len() + value.as_ref().map_or(ELEMENT, Variable::bytes));
        let pairs = self.references.iter().chain(&self.files).map(|(name, text)| name.len() + text.len() + 2 * ELEMENT);
        let texts = self.output.iter().chain(&self.input).chain([&self.folder]).map(String::len);
        let functions = self.functions.keys().map(|name| name.len() + ELEMENT);
        variables.chain(pairs).chain(texts).chain(functions).sum::<usize>() + bytes_of(&self.arguments)
    }
}
