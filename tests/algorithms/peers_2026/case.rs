//! One case of `algorithms-2026.json`, and the conversion between its ragged rows and our columns.

use serde_json::{Value, json};

/// A case with the columns that most algorithms read.
pub(crate) struct PeerCase<'a> {
    pub json: &'a Value,
    /// Sequence boundaries, from `in.mask`; without that key each response of `in.uid` has one token.
    pub offsets: Vec<usize>,
    /// `in.mask`, one response after another; 1 without that key.
    pub mask: Vec<f32>,
}

impl<'a> PeerCase<'a> {
    pub(super) fn new(json: &'a Value) -> Self {
        let responses = json["in"]["uid"].as_array().map_or(0, Vec::len);
        let rows = json["in"]["mask"].as_array().cloned().unwrap_or_else(|| vec![json!([1]); responses]);
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.as_array().unwrap().len();
            Some(*end)
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        let mask = rows.iter().flat_map(|row| row.as_array().unwrap()).map(|m| number(m) as f32).collect();
        Self { json, offsets, mask }
    }

    pub(crate) fn id(&self) -> &str {
        self.json["id"].as_str().unwrap()
    }

    /// Returns an input that is a list of responses, each a list of tokens.
    pub(crate) fn column(&self, name: &str) -> Vec<f32> {
        let rows = self.json["in"][name].as_array().unwrap_or_else(|| panic!("{}: no input {name}", self.id()));
        rows.iter().flat_map(|row| row.as_array().unwrap()).map(|v| number(v) as f32).collect()
    }

    /// Returns an input with one number per response.
    pub(crate) fn numbers(&self, name: &str) -> Vec<f64> {
        let list = self.json["in"][name].as_array().unwrap_or_else(|| panic!("{}: no input {name}", self.id()));
        list.iter().map(number).collect()
    }

    /// Returns the number of the group of each response.
    pub(crate) fn groups(&self) -> Vec<usize> {
        self.numbers("uid").iter().map(|&uid| uid as usize).collect()
    }

    pub(crate) fn responses(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Gives each token the number of its response.
    pub(crate) fn spread(&self, numbers: &[f64]) -> Vec<f32> {
        self.offsets.windows(2).zip(numbers).flat_map(|(pair, &n)| vec![n as f32; pair[1] - pair[0]]).collect()
    }

    /// Returns a column with the number of each response on its last trained token.
    pub(crate) fn on_last(&self, numbers: &[f64]) -> Vec<f32> {
        let mut column = vec![0.0; self.mask.len()];
        for (pair, &number) in self.offsets.windows(2).zip(numbers) {
            if let Some(last) = (pair[0]..pair[1]).rev().find(|&t| self.mask[t] != 0.0) {
                column[last] = number as f32;
            }
        }
        column
    }

    /// Returns a setting of the peer; null if the case does not name it.
    pub(crate) fn option(&self, name: &str) -> &'a Value {
        &self.json["options"][name]
    }

    pub(crate) fn option_number(&self, name: &str) -> f64 {
        number(self.option(name))
    }

    pub(crate) fn option_word(&self, name: &str) -> &'a str {
        self.option(name).as_str().unwrap_or_else(|| panic!("{}: the option {name} is not a word", self.id()))
    }

    /// Returns a column in the form of the file; tokens with mask 0 are not compared.
    pub(crate) fn ragged(&self, column: &[f32]) -> Value {
        let token = |t: usize| if self.mask[t] == 0.0 { Value::Null } else { json!(f64::from(column[t])) };
        self.offsets.windows(2).map(|pair| (pair[0]..pair[1]).map(token).collect::<Value>()).collect()
    }

    /// Like [`Self::ragged`], with all tokens.
    pub(crate) fn whole(&self, column: &[f32]) -> Value {
        let token = |t: usize| json!(f64::from(column[t]));
        self.offsets.windows(2).map(|pair| (pair[0]..pair[1]).map(token).collect::<Value>()).collect()
    }
}

/// Returns a number; the file writes those that JSON lacks as text.
pub(crate) fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap_or_else(|| panic!("not a number: {value}")),
    }
}
