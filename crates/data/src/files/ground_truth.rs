//! The ground truth of a row, for training and evaluation.

use anyhow::{Context, Result};
use serde_json::Value;

use super::missing_columns::{GROUND_TRUTH, LABEL_KEY, with_remedies};
use super::rows::Row;

/// Column of `{"ground_truth": …}`, as in verl.
const REWARD_MODEL: &str = "reward_model";

/// Column of the ground truth for reward functions of TRL.
const SOLUTION: &str = "solution";

/// The place of the ground truth in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroundTruthKey {
    /// The field `ground_truth` of this column, as in verl.
    Field(String),
    /// The field `ground_truth` of the column `reward_model`; without this column, the column `solution`, as in TRL.
    FieldOrSolution,
    /// This column itself, as in OpenRLHF.
    Column(String),
    /// Rows have no ground truth; it is an empty text, as in OpenRLHF.
    None,
}

impl Default for GroundTruthKey {
    fn default() -> Self {
        Self::Field(REWARD_MODEL.to_owned())
    }
}

impl GroundTruthKey {
    /// Returns the place that `data.label_key` names; `otherwise` if it is null.
    pub fn new(label_key: Option<&str>, otherwise: Self) -> Self {
        match label_key {
            None => otherwise,
            Some("") => Self::None,
            Some(column) => Self::Column(column.to_owned()),
        }
    }

    /// Returns the place for rewards that also read the column `solution`.
    pub fn or_solution(self, reads_solution: bool) -> Self {
        if reads_solution && self == Self::default() { Self::FieldOrSolution } else { self }
    }

    /// Returns the columns that may hold the ground truth.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Self::Field(column) | Self::Column(column) => vec![column],
            Self::FieldOrSolution => vec![REWARD_MODEL, SOLUTION],
            Self::None => Vec::new(),
        }
    }

    /// Returns the column that every file must have. A column that a user names must exist, even if no scorer reads it.
    pub fn required(&self, needed: bool) -> Option<&str> {
        let (Self::Field(column) | Self::Column(column)) = self else { return None };
        (needed || *self != Self::default()).then_some(column)
    }

    /// Returns the setting that names the place, and the column.
    pub fn setting(&self) -> (&'static str, &str) {
        match self {
            Self::Column(column) => (LABEL_KEY, column),
            Self::Field(column) => (GROUND_TRUTH, column),
            Self::FieldOrSolution | Self::None => (GROUND_TRUTH, REWARD_MODEL),
        }
    }

    /// Returns the ground truth of a row; null if missing and not `needed`.
    ///
    /// # Errors
    /// If the ground truth is needed and the column or field is missing. Null is accepted: a rule reports that it cannot compare
    /// with null, and a user's function receives it.
    pub fn value_in<'a>(&self, row: &'a Row, needed: bool) -> Result<&'a Value> {
        static NO_ANSWER: Value = Value::String(String::new());
        let column = match self {
            Self::None => return Ok(&NO_ANSWER),
            Self::Column(column) => return row.column(column),
            Self::Field(column) => column,
            Self::FieldOrSolution if row.values.get(REWARD_MODEL).is_none_or(Value::is_null) => {
                let solution = row.column(SOLUTION).map_err(|error| with_remedies(error, &[(LABEL_KEY, SOLUTION)]));
                return if needed { solution } else { Ok(solution.unwrap_or(&Value::Null)) };
            }
            Self::FieldOrSolution => REWARD_MODEL,
        };
        if needed {
            return row.column(column)?.get("ground_truth").with_context(|| {
                format!("{column} has no field ground_truth: set it to the reference answer, or to null for a row without one")
            });
        }
        Ok(row.values.get(column).and_then(|column| column.get("ground_truth")).unwrap_or(&Value::Null))
    }
}
