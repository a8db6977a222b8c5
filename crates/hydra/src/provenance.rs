//! The origin of a value: a place in a file, or an override on the command line.

use std::fmt;
use std::sync::Arc;

/// A YAML text and its name in messages.
#[derive(Debug, PartialEq)]
pub struct YamlSource {
    pub name: String,
    pub text: String,
}

/// A position in a [`YamlSource`]; lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub line: usize,
    pub column: usize,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    File {
        source: Arc<YamlSource>,
        /// The position of the key; for an item of a list, the position of the value.
        key: Mark,
        value: Mark,
    },
    /// The override, as typed.
    Override(Arc<str>),
}

impl Origin {
    /// Returns the same origin, but with the position of the key instead of the value.
    pub fn at_key(&self) -> Self {
        match self {
            Self::File { source, key, .. } => Self::File { source: source.clone(), key: *key, value: *key },
            Self::Override(text) => Self::Override(text.clone()),
        }
    }

    /// Returns the line of the file with a caret under the value; empty for overrides, which are always shown in full.
    pub(crate) fn snippet(&self) -> String {
        let Self::File { source, value, .. } = self else { return String::new() };
        let line = source.text.lines().nth(value.line - 1).unwrap_or_default();
        let number = value.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent: String = line.chars().take(value.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{number} | {line}\n{gutter} | {indent}^")
    }
}

impl Origin {
    /// Returns the written text from the value to the end of its line or override.
    pub fn written(&self) -> &str {
        match self {
            Self::File { source, value, .. } => {
                let line = source.text.lines().nth(value.line - 1).unwrap_or_default();
                line.char_indices().nth(value.column - 1).map_or("", |(at, _)| &line[at..])
            }
            Self::Override(text) => text.split_once('=').map_or("", |(_, value)| value),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File { source, value, .. } => write!(f, "{}:{}:{}", source.name, value.line, value.column),
            Self::Override(text) => write!(f, "override `{text}`"),
        }
    }
}
