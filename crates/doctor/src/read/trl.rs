//! The record of TRL: trainer_state.json, and in the same folder arguments, chat template, completions and rows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burnish_util::json_number;
use serde_json::Value;

use super::{lenient, trl_files};
use crate::evidence::{Evidence, MetricRow, RowsByStep, RunLibrary, own_name};
use crate::phase::CheckPhase;

const STATE: &str = "trainer_state.json";

/// Reads a folder or a `trainer_state.json`. Of a folder of checkpoints, the last checkpoint has the longest record.
pub(super) fn read(path: &Path) -> Result<Option<Evidence>> {
    let Some(state_path) = state_of(path) else { return Ok(None) };
    let state = lenient::read_json(&state_path)?;
    let history = state["log_history"].as_array().with_context(|| format!("{} has no log_history", state_path.display()))?;
    let mut evidence = Evidence::new(CheckPhase::After, RunLibrary::Trl);
    let mut rows = RowsByStep::default();
    for entry in history {
        add(&mut rows, entry);
    }
    evidence.rows = rows.into_rows();
    add_tokens(&mut evidence.rows);
    evidence.sources.push(format!("{}: metrics of {} steps", state_path.display(), evidence.rows.len()));
    let folder = folder_of(&state_path);
    trl_files::add(&mut evidence, &folder, &state)?;
    Ok(Some(evidence))
}

/// Returns the folder with the other files: that of the run, above a checkpoint.
fn folder_of(state: &Path) -> PathBuf {
    let folder = state.parent().unwrap_or(Path::new("."));
    let is_checkpoint = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("checkpoint-"));
    match folder.parent() {
        Some(above) if is_checkpoint => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Adds the tokens of each step. TRL writes their sum so far.
fn add_tokens(rows: &mut [MetricRow]) {
    let mut before = 0.0;
    for row in rows {
        let Some(so_far) = row.values.get("train/num_tokens").copied() else { continue };
        row.values.insert("perf/total_num_tokens".to_owned(), so_far - before);
        before = so_far;
    }
}

/// Adds an entry of `log_history` to the row of its step. The last entry, with the run time, is a summary and not a step.
fn add(rows: &mut RowsByStep, entry: &Value) {
    let (Some(object), Some(step)) = (entry.as_object(), entry["step"].as_u64()) else { return };
    if object.contains_key("train_runtime") {
        return;
    }
    rows.add(step, object.iter().filter_map(|(name, value)| Some((own_name(name), json_number::from_value(value)?))));
}

fn state_of(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return path.file_name().is_some_and(|name| name == STATE).then(|| path.to_owned());
    }
    if path.join(STATE).is_file() {
        return Some(path.join(STATE));
    }
    let step = |folder: &Path| folder.file_name()?.to_str()?.strip_prefix("checkpoint-")?.parse::<u64>().ok();
    let below = path.read_dir().ok()?.flatten().map(|entry| entry.path());
    let last = below.filter(|folder| folder.join(STATE).is_file()).filter_map(|folder| Some((step(&folder)?, folder)));
    last.max().map(|(_, folder)| folder.join(STATE))
}
