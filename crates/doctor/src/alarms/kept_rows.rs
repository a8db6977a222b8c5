//! The rows that alarms look at: the first, the last, and the validations between them. Their number does not grow with the run.

use crate::evidence::MetricRow;

/// First rows, which later ones are compared with.
pub(super) const FIRST: usize = 10;
/// Last rows. The widest look back of a check is a median of 20 steps before each of the last.
pub(super) const LAST: usize = 40;
/// Validations between the two. Only their accuracy and score are kept.
pub(super) const VALIDATIONS: usize = 32;

const SCORE: &str = "critic/score/mean";

/// Beginnings of metrics that no alarm reads. They are half of a row.
const UNREAD: &[&str] = &["timing_", "perf/", "variance_proxy/"];

/// Adds a row at the end, and drops what is not needed, or no longer.
pub(super) fn add(rows: &mut Vec<MetricRow>, mut row: MetricRow) {
    row.values.retain(|name, _| !UNREAD.iter().any(|beginning| name.starts_with(beginning)));
    match rows.last_mut().filter(|last| last.step == row.step) {
        Some(last) => last.values.extend(row.values),
        None => rows.push(row),
    }
    let Some(leaving) = rows.len().checked_sub(LAST + 1).filter(|at| *at >= FIRST) else { return };
    let is_validation = |row: &MetricRow| row.values.keys().any(|name| is_accuracy(name));
    if !is_validation(&rows[leaving]) {
        rows.remove(leaving);
        return;
    }
    rows[leaving].values.retain(|name, _| is_accuracy(name) || name == SCORE);
    if leaving >= FIRST + VALIDATIONS {
        rows.remove(FIRST);
    }
}

fn is_accuracy(name: &str) -> bool {
    name.starts_with("val-core/")
}
