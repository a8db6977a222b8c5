//! The ground truth of a row, for training and evaluation.

use anyhow::{Context, Result};
use serde_json::Value;

use super::rows::Row;

/// Column of `{"ground_truth": …}`, as in verl.
pub(crate) const REWARD_MODEL_KEY: &str = "reward_model";

/// Returns the ground truth in a column `{"ground_truth": …}`; null if missing and not `needed`.
///
/// # Errors
/// If the ground truth is needed and the column or field is missing. Null is accepted: a rule reports that it cannot compare with
/// null, and a user's function receives it.
pub fn ground_truth<'a>(row: &'a Row, column: &str, needed: bool) -> Result<&'a Value> {
    if needed {
        return row.column(column)?.get("ground_truth").with_context(|| {
            format!("{column} has no field ground_truth: set it to the reference answer, or to null for a row without one")
        });
    }
    Ok(row.values.get(column).and_then(|column| column.get("ground_truth")).unwrap_or(&Value::Null))
}
