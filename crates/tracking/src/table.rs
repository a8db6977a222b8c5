//! A table of texts and numbers that belongs to one step, such as samples.

use std::fmt;

/// A table of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTable {
    /// Name of the table, which becomes part of file names.
    pub name: &'static str,
    pub columns: Vec<String>,
    /// Rows; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Shorter texts that a terminal shows in place of the first cell of each row; may be empty.
    pub brief: Vec<String>,
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Number(f64),
    /// No value, such as the score of a response from which all reward functions abstained.
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
