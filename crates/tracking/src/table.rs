//! A table of texts and numbers that belongs to one step, such as samples.

use std::fmt;

/// A table of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name of the table; part of file names.
    pub name: &'static str,
    pub columns: Vec<String>,
    /// The rows; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Number(f64),
    /// No value, such as the score of a response that no reward function has an opinion on.
    None,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::None => f.write_str("none"),
        }
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::None, Self::Number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
