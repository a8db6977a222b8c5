//! The folder of a run of burnish: metrics.jsonl, and run.json with the settings.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::{lenient, lines};
use crate::evidence::{Evidence, RunLibrary};
use crate::phase::CheckPhase;

const METRICS: &str = "metrics.jsonl";
const INFO: &str = "run.json";

/// Reads a folder, or one of these files in it.
pub(super) fn read(path: &Path) -> Result<Option<Evidence>> {
    let is_own = path.file_name().is_some_and(|name| name == METRICS || name == INFO);
    let folder = match path.parent() {
        Some(parent) if is_own && path.is_file() => parent,
        _ => path,
    };
    let (metrics, info) = (folder.join(METRICS), folder.join(INFO));
    if !(info.is_file() || metrics.is_file() && folder == path) {
        return Ok(None);
    }
    let info = if info.is_file() { lenient::read_json(&info)? } else { Value::Null };
    let kind = info["kind"].as_str().unwrap_or("ppo");
    let library = if kind == "ppo" { RunLibrary::Verl } else { RunLibrary::Stage };
    let mut evidence = Evidence::new(CheckPhase::After, library);
    let metrics = if metrics.is_file() { metrics } else { recorded(&info) };
    let settings = info["config"].as_array().into_iter().flatten();
    evidence.settings = settings.filter_map(|one| Some((one["key"].as_str()?.to_owned(), one["value"].clone()))).collect();
    let mut rows = if metrics.is_file() { lines::rows(&metrics)? } else { vec![] };
    for row in &mut rows {
        row.values = std::mem::take(&mut row.values).into_iter().map(|(name, value)| (evidence.own_name(&name), value)).collect();
    }
    evidence.rows = rows;
    evidence.functions = functions(&evidence);
    let (steps, settings) = (evidence.rows.len(), evidence.settings.len());
    evidence.sources.push(format!("{}: metrics of {steps} steps, {settings} settings", folder.display()));
    Ok(Some(evidence))
}

/// Returns the file of metrics that run.json names.
fn recorded(info: &Value) -> PathBuf {
    Path::new(info["cwd"].as_str().unwrap_or_default()).join(info["metrics"].as_str().unwrap_or_default())
}

/// Returns the reward functions that the settings name, with their weights.
fn functions(evidence: &Evidence) -> Vec<(String, f64)> {
    let list = |key: &str| evidence.setting(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let weights = list("weights");
    let weight = |at: usize| weights.get(at).and_then(Value::as_f64).unwrap_or(1.0);
    let names = list("functions");
    let names = names.iter().enumerate().filter_map(|(at, name)| Some((name.as_str()?.to_owned(), weight(at))));
    names.collect()
}
