//! A folder of Weights & Biases: the client's log, the history as lines, or else the summary, which has the last values.

use std::path::{Path, PathBuf};

use anyhow::Result;
use burnish_util::foreign;
use serde_json::Value;

use super::lenient::{self, RECORD};
use super::lines::numbers;
use super::wandb_log;
use crate::evidence::{Evidence, MetricRow, RunLibrary, own_name};
use crate::phase::CheckPhase;

const HISTORY: &str = "wandb-history.jsonl";
const SUMMARY: &str = "wandb-summary.json";
/// Key of the step in a row.
const STEP: &str = "_step";
/// Key that transformers adds to each row.
const OF_TRANSFORMERS: &str = "train/global_step";

/// Reads the folder of a run, its `files` folder, or one of the files.
pub(super) fn read(path: &Path) -> Result<Option<Evidence>> {
    let Some(file) = file(path) else { return Ok(None) };
    let rows: Vec<MetricRow> = if file.extension().is_some_and(|ending| ending == "wandb") {
        wandb_log::rows(&file)?
    } else if file.ends_with(HISTORY) {
        let text = foreign::read_text(&file, RECORD)?;
        text.lines().filter_map(|line| row(&lenient::parse(line).ok()?)).collect()
    } else {
        row(&lenient::read_json(&file)?).into_iter().collect()
    };
    let mut evidence = Evidence::new(CheckPhase::After, RunLibrary::Verl);
    evidence.sources.push(format!("{}: metrics of {} steps", file.display(), rows.len()));
    evidence.rows = rows;
    if evidence.rows.iter().any(|row| row.values.contains_key(OF_TRANSFORMERS)) {
        evidence.library = RunLibrary::Trl;
        evidence.rows.iter_mut().for_each(rename);
    }
    Ok(Some(evidence))
}

/// Returns the file with most rows: the log, the history or the summary.
fn file(path: &Path) -> Option<PathBuf> {
    let is_log = |path: &Path| path.extension().is_some_and(|ending| ending == "wandb");
    let is_known = |path: &Path| is_log(path) || path.ends_with(HISTORY) || path.ends_with(SUMMARY);
    if path.is_file() {
        return is_known(path).then(|| path.to_owned());
    }
    let mut logs: Vec<PathBuf> = path.read_dir().ok()?.flatten().map(|entry| entry.path()).filter(|path| is_log(path)).collect();
    logs.sort();
    let others = [path.join(HISTORY), path.join("files").join(HISTORY), path.join(SUMMARY), path.join("files").join(SUMMARY)];
    logs.into_iter().chain(others).find(|file| file.is_file())
}

fn row(value: &Value) -> Option<MetricRow> {
    let object = value.as_object()?;
    Some(MetricRow { step: object.get(STEP)?.as_u64()?, values: numbers(object) })
}

/// Gives a row of transformers the names of burnish, and its own count of steps.
fn rename(row: &mut MetricRow) {
    row.step = row.values.get(OF_TRANSFORMERS).map_or(row.step, |step| *step as u64);
    let values = std::mem::take(&mut row.values);
    row.values =
        values.into_iter().map(|(name, value)| (own_name(name.strip_prefix("train/").unwrap_or(&name)), value)).collect();
}
