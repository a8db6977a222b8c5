//! The ground truth of a row, for training and for evaluation alike.

use anyhow::{Context, Result};
use serde_json::Value;

use super::rows::Row;

/// The column of `{"ground_truth": …}`, as in verl.
pub const REWARD_MODEL_KEY: &str = "reward_model";

/// Returns the ground truth in a column `{"ground_truth": …}`; null where there is none and it is not `needed`.
///
/// # Errors
/// A row that needs one and has no such column or field. A null is a ground truth: a rule that compares with it says that it
/// cannot, and a function of the user's gets it.
pub fn ground_truth<'a>(row: &'a Row, column: &str, needed: bool) -> Result<&'a Value> {
    if needed {
        return row.column(column)?.get("ground_truth").with_context(|| {
            format!(
                "{column} has no field ground_truth: give the answer that responses are compared with, or null for a row without one"
            )
        });
    }
    Ok(row.values.get(column).and_then(|column| column.get("ground_truth")).unwrap_or(&Value::Null))
}
