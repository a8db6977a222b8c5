//! Manifests of runs in the words of several authors. Fields that are missing leave more than one verdict right.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{CHECKS, Check, CheckPhase, Verdict};

/// A run with its expected diagnosis.
#[derive(Debug)]
pub(super) struct RunCase {
    pub(super) path: PathBuf,
    /// No check may fail.
    pub(super) is_sound: bool,
    /// One of these checks gives the verdict; an empty list allows any check.
    pub(super) checks: Vec<&'static str>,
    /// Verdicts that are right for a faulty run.
    pub(super) verdicts: Vec<Verdict>,
}

/// Parts of the names that others give to checks, and the names here. All parts that a name has count.
const WORDS: &[(&str, &[&str])] = &[
    ("abstain", &["function without opinion"]),
    ("accuracy", &["score against accuracy"]),
    ("adapter", &["nothing moves"]),
    ("constant", &["no signal"]),
    ("critic", &["critic"]),
    ("cut", &["responses cut"]),
    ("duplicate", &["seen validation"]),
    ("engine", &["generation against training"]),
    ("entropy", &["entropy"]),
    ("environment", &["environments"]),
    ("first", &["first KL"]),
    ("generation", &["generation against training"]),
    ("gradient", &["NaN", "nothing moves"]),
    ("kl", &["KL", "first KL"]),
    ("learning rate", &["nothing moves", "score falls", "step size"]),
    ("length", &["length", "responses cut"]),
    ("masked", &["no trained token"]),
    ("moves", &["nothing moves"]),
    ("nan", &["NaN"]),
    ("never end", &["responses cut"]),
    ("opinion", &["function without opinion"]),
    ("pairs", &["pairs"]),
    ("prefill", &["tag of the template"]),
    ("ratio", &["clipping", "first KL", "step size"]),
    ("score falls", &["score falls"]),
    ("signal", &["no signal"]),
    ("slow", &["speed"]),
    ("speed", &["speed"]),
    ("step size", &["step size"]),
    ("tag", &["tag of the template"]),
    ("text prompt", &["text prompt of a chat model"]),
    ("trained token", &["no trained token"]),
    ("training and validation", &["seen validation"]),
    ("update", &["step size"]),
    ("validation", &["seen validation"]),
];

/// Returns the checks of a name: the check of a record with that name, or those whose words it has.
fn checks_of(name: &str) -> Vec<&'static str> {
    let of_record = |check: &&&Check| check.name == name && check.phases.contains(&CheckPhase::After);
    if let Some(check) = CHECKS.iter().find(of_record) {
        return vec![check.name];
    }
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let has = |part: &str| words.starts_with(part) || words.contains(&format!(" {part}"));
    WORDS.iter().filter(|(part, _)| has(part)).flat_map(|(_, checks)| checks.iter().copied()).collect()
}

/// Returns the verdicts that a text names before its first bracket, comma or `never`.
fn verdicts_of(text: &str) -> Vec<Verdict> {
    let before = |text: &str, mark: &str| text.split(mark).next().unwrap_or_default().to_owned();
    let words = ["(", ",", "never"].into_iter().fold(text.to_lowercase(), |text, mark| before(&text, mark));
    let known = [Verdict::Pass, Verdict::Warn, Verdict::Fail];
    known.into_iter().filter(|verdict| words.contains(verdict.name())).collect()
}

/// Reads a case; `None` if the entry describes something other than a run, such as a reward function.
fn case(folder: &Path, entry: &Value) -> Option<RunCase> {
    let text = |key: &str| entry[key].as_str();
    let name = text("run").or_else(|| text("file").filter(|_| entry.get("rows").is_none()))?;
    let list = |key: &str| entry[key].as_array().map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let named = list("checks").or_else(|| list("expected_checks")).unwrap_or_default();
    let of_names: Vec<Vec<&'static str>> = named.iter().map(|name| checks_of(name)).collect();
    // A name without known words may mean any check.
    let is_known = of_names.iter().all(|checks| !checks.is_empty());
    let mut verdicts = verdicts_of(text("verdict").or_else(|| text("expected_verdict")).unwrap_or_default());
    let is_unstated = verdicts.is_empty() && named.is_empty() && entry["fault"].is_null();
    let is_sound = is_unstated || verdicts.contains(&Verdict::Pass);
    if verdicts.is_empty() {
        verdicts = vec![Verdict::Warn, Verdict::Fail];
    }
    Some(RunCase { path: folder.join(name), is_sound, checks: if is_known { of_names.concat() } else { vec![] }, verdicts })
}

/// Reads the manifest of a folder.
///
/// # Errors
/// If the file is not a list of objects.
pub(super) fn cases(folder: &Path) -> Result<Vec<RunCase>> {
    let path = folder.join("manifest.json");
    let entries: Vec<Value> =
        serde_json::from_slice(&std::fs::read(&path)?).with_context(|| format!("{} is not a list", path.display()))?;
    Ok(entries.iter().filter_map(|entry| case(folder, entry)).collect())
}

#[test]
fn manifests_of_others_are_understood() {
    let read = |entry: Value| {
        let found = case(Path::new("x"), &entry).unwrap();
        (found.is_sound, found.checks.concat(), found.verdicts)
    };
    let faulty = |checks: &str, verdicts: &[Verdict]| (false, checks.to_owned(), verdicts.to_vec());
    let (warn, fail) = (Verdict::Warn, Verdict::Fail);
    let theirs =
        json!({"run": "a", "fault": "f", "expected_checks": ["rows without a trained token"], "expected_verdict": "fail"});
    assert_eq!(read(theirs), faulty("no trained token", &[fail]));
    let by_share = json!({"file": "a", "expected_checks": ["KL"], "expected_verdict": "warn or fail by share", "other": 1});
    assert_eq!(read(by_share), faulty("KL", &[warn, fail]));
    let unknown = json!({"run": "a", "expected_checks": ["entropy", "of my own"]});
    assert_eq!(read(unknown), faulty("", &[warn, fail]));
    assert_eq!(read(json!({"run": "a", "fault": "f"})), faulty("", &[warn, fail]));
    for sound in [json!({"run": "a"}), json!({"run": "a", "fault": null, "expected_verdict": "pass (a fail is false)"})] {
        assert!(read(sound).0);
    }
    assert!(case(Path::new("x"), &json!({"file": "reward.py", "rows": "rows.jsonl"})).is_none());
}
