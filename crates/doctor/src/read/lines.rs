//! Lines of `{"step", "data"}`, which burnish and verl's file logger write.

use std::path::Path;

use anyhow::{Result, ensure};
use burnish_util::{foreign, json_number};
use serde_json::Value;

use super::lenient::{self, RECORD};
use crate::evidence::{Evidence, MetricRow, RowsByStep, RunLibrary};
use crate::phase::CheckPhase;

/// Reads a file of such lines.
pub(super) fn read(path: &Path) -> Result<Option<Evidence>> {
    if !path.is_file() {
        return Ok(None);
    }
    let rows = rows(path)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut evidence = Evidence::new(CheckPhase::After, RunLibrary::Verl);
    evidence.sources.push(format!("{}: metrics of {} steps", path.display(), rows.len()));
    evidence.rows = rows;
    Ok(Some(evidence))
}

/// Returns the rows of a file, in the order of their steps. The last row of a step counts, as in a resumed run. A torn last line is
/// left out.
///
/// # Errors
/// If the file cannot be read, or a line before the last is not such a row although others are.
pub(super) fn rows(path: &Path) -> Result<Vec<MetricRow>> {
    let text = foreign::read_text(path, RECORD)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut rows = RowsByStep::default();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(row) = row(line) else {
            let is_other_file = rows.is_empty();
            ensure!(
                is_other_file || number + 1 == lines.len(),
                "{}:{}: expected a line {{\"step\": …, \"data\": {{…}}}}",
                path.display(),
                number + 1
            );
            break;
        };
        rows.add(row.step, row.values);
    }
    Ok(rows.into_rows())
}

fn row(line: &str) -> Option<MetricRow> {
    let Value::Object(line) = lenient::parse(line).ok()? else { return None };
    let Value::Object(data) = line.get("data")? else { return None };
    Some(MetricRow { step: line.get("step")?.as_u64()?, values: numbers(data) })
}

/// Returns the numbers of an object; null is NaN.
pub(super) fn numbers(object: &serde_json::Map<String, Value>) -> std::collections::BTreeMap<String, f64> {
    object.iter().filter_map(|(name, value)| Some((name.clone(), json_number::from_value(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A search through all earlier rows for each row took half a minute.
    #[test]
    fn many_steps_in_any_order_are_read_in_linear_time() {
        const STEPS: u64 = 200_000;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("metrics.jsonl");
        let line = |step: u64| format!("{{\"step\": {step}, \"data\": {{\"a\": {step}}}}}\n");
        let lines = (0..STEPS).rev().chain([7]).map(line).collect::<String>() + r#"{"step": 7, "data": {"a": 1, "b": 2}}"#;
        std::fs::write(&file, lines).unwrap();
        let started = Instant::now();
        let rows = rows(&file).unwrap();
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        assert!(rows.iter().map(|row| row.step).eq(0..STEPS));
        assert_eq!((rows[7].values["a"], rows[7].values["b"], rows[8].values["a"]), (1.0, 2.0, 8.0));
    }
}
