//! Texts and numbers of one step in rows and columns, such as samples.

use std::fmt;

/// A table of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows; part of file names.
    pub name: &'static str,
    pub columns: Vec<String>,
    /// One cell per column in each.
    pub rows: Vec<Vec<Cell>>,
}

/// What stands in one row under one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Number(f64),
    /// Nothing, such as the score of a response that no reward function has an opinion on.
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
