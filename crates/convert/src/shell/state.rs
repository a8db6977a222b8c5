//! The state that commands of a script can change: variables, arguments, functions, the folder.

use brush_parser::ast::FunctionBody;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Variable {
    Text(String),
    Array(BTreeMap<i64, String>),
    /// An associative array of `declare -A`.
    Map(BTreeMap<String, String>),
}

/// The result of a command; `Unknown` if it depends on a real run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Is(bool),
    Unknown,
}

/// The control flow after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellFlow {
    Next,
    /// Leaves this number of loops.
    Break(usize),
    Continue(usize),
    Return,
    Exit,
}

#[derive(Clone)]
pub(super) struct ShellState {
    /// Variables that the script set or unset (`None`); all others come from the environment.
    pub variables: HashMap<String, Option<Variable>>,
    /// Namerefs of `declare -n`: the reference, and the name of its variable.
    pub references: HashMap<String, String>,
    pub arguments: Vec<String>,
    pub functions: HashMap<String, Rc<FunctionBody>>,
    pub folder: String,
    pub status: Status,
    /// Exit code of the last failed command.
    pub code: i64,
    /// Output so far, inside `$(…)` and before a `|`.
    pub output: Option<String>,
    /// Standard input: the output before a `|`, or a here-document.
    pub input: Option<String>,
    /// Texts that the script wrote to files, by path.
    pub files: HashMap<String, String>,
    /// True after `set -u`.
    pub(crate) needs_variables: bool,
    /// True after `set -e`.
    pub(crate) ends_on_failure: bool,
}

impl ShellState {
    /// Follows a nameref.
    pub(super) fn referred<'a>(&'a self, name: &'a str) -> &'a str {
        // A chain longer than all names is a cycle, which bash refuses.
        let next = |name: &&'a str| self.references.get(*name).map(String::as_str);
        std::iter::successors(Some(name), next).take(self.references.len() + 1).last().unwrap_or(name)
    }
}

impl Variable {
    pub(super) fn list(items: impl IntoIterator<Item = String>) -> Self {
        Self::Array((0..).zip(items).collect())
    }

    /// Returns the text of `$NAME`; for an array, its first element.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Array(items) => items.get(&0).cloned(),
            Self::Map(items) => items.get("0").cloned(),
        }
    }

    /// Returns the elements of `${NAME[@]}`.
    pub(super) fn elements(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Array(items) => items.values().cloned().collect(),
            Self::Map(items) => items.values().cloned().collect(),
        }
    }

    /// Returns the indices of `${!NAME[@]}`.
    pub(super) fn indices(&self) -> Vec<String> {
        match self {
            Self::Text(_) => vec!["0".into()],
            Self::Array(items) => items.keys().map(i64::to_string).collect(),
            Self::Map(items) => items.keys().cloned().collect(),
        }
    }
}
