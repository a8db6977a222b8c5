//! A folder of Weights & Biases: the history as lines, where the client or an export left it, or else the summary of last values.

use std::path::{Path, PathBuf};

use anyhow::Result;
use burnish_util::foreign;
use serde_json::Value;

use super::lenient::{self, RECORD};
use super::lines::numbers;
use crate::check::CheckPhase;
use crate::evidence::{Evidence, MetricRow, RunLibrary};

const HISTORY: &str = "wandb-history.jsonl";
const SUMMARY: &str = "wandb-summary.json";
/// Key of the step in a row.
const STEP: &str = "_step";

/// Reads the folder of a run, its `files` folder, or one of the two files.
pub(super) fn read(path: &Path) -> Result<Option<Evidence>> {
    let Some(folder) = folder(path) else { return Ok(None) };
    let mut evidence = Evidence::new(CheckPhase::After, RunLibrary::Verl);
    let history = folder.join(HISTORY);
    let rows: Vec<Value> = match history.is_file() {
        true => foreign::read_text(&history, RECORD)?.lines().filter_map(|line| lenient::parse(line).ok()).collect(),
        false => vec![lenient::read_json(&folder.join(SUMMARY))?],
    };
    evidence.rows = rows.iter().filter_map(row).collect();
    if evidence.rows.iter().any(|row| row.values.keys().any(|name| name.starts_with("train/reward"))) {
        evidence.library = RunLibrary::Trl;
    }
    let source = if history.is_file() { HISTORY } else { "wandb-summary.json, which has the last step only" };
    evidence.sources.push(format!("{}: {} steps of {source}", folder.display(), evidence.rows.len()));
    Ok(Some(evidence))
}

fn folder(path: &Path) -> Option<PathBuf> {
    let is_named = path.is_file() && path.file_name().is_some_and(|name| name == HISTORY || name == SUMMARY);
    let named = is_named.then(|| path.parent().unwrap_or(path).to_owned());
    let folders = named.into_iter().chain([path.to_owned(), path.join("files")]);
    folders.into_iter().find(|folder| [HISTORY, SUMMARY].iter().any(|file| folder.join(file).is_file()))
}

fn row(value: &Value) -> Option<MetricRow> {
    let object = value.as_object()?;
    Some(MetricRow { step: object.get(STEP)?.as_u64()?, values: numbers(object) })
}
