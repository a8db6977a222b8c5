//! `trainer reward check --data`: every faulty function gets its findings, and no honest one is accused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::common::trainer;

mod services;

const OWN: &str = "tests/data/doctor";

/// The findings of an examination: (name, verdict, sentence). The exit code is 1 if and only if one fails.
fn findings(function: &str, rows: &Path, settings: &[&str]) -> Vec<(String, String, String)> {
    findings_of(function, trainer(&words(function, rows, settings)))
}

fn words<'a>(function: &'a str, rows: &'a Path, settings: &[&'a str]) -> Vec<&'a str> {
    let words = ["reward", "check", function, "--json", "reward.timeout=3", "--data", rows.to_str().unwrap()];
    [&words[..], settings].concat()
}

/// The same, by a command.
fn findings_of(function: &str, mut command: Command) -> Vec<(String, String, String)> {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.lines().map(|line| {
        let one: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| one[key].as_str().unwrap().to_owned();
        (of("check"), of("verdict"), of("found"))
    });
    let found: Vec<_> = found.collect();
    let code = i32::from(found.iter().any(|(_, verdict, _)| verdict == "fail"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(code) && found.len() > 20, "{function}: {:?} {said}\n{text}", output.status);
    let missed: Vec<_> = found.iter().filter(|(_, verdict, _)| verdict == "not reached").collect();
    // A function that hangs ends the examination.
    let hangs = found.iter().any(|(name, verdict, _)| name == "slow_growth" && verdict == "fail");
    assert!(missed.is_empty() || hangs, "{function}: {missed:?}");
    found
}

/// Names of the warnings and failures.
fn accused(found: &[(String, String, String)]) -> BTreeSet<&str> {
    found.iter().filter(|(_, verdict, _)| verdict == "warn" || verdict == "fail").map(|(name, ..)| name.as_str()).collect()
}

/// Problems of a case: an honest function that is accused, or an expected finding that is missing.
fn problem(function: &str, expected: &[&str], found: &[(String, String, String)]) -> Option<String> {
    let names = accused(found);
    let is_wrong = match expected {
        [] => !names.is_empty(),
        expected => expected.iter().any(|name| !names.contains(name)),
    };
    let spoken: Vec<_> = found.iter().filter(|(name, ..)| names.contains(name.as_str())).collect();
    is_wrong.then(|| format!("{function} should get {expected:?} and gets {spoken:#?}"))
}

fn no_problems(problems: Vec<Option<String>>) {
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The functions of a manifest that do not get their findings. A faulty function without named findings gets some.
fn problems_of(folder: &Path) -> Vec<Option<String>> {
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let problems = cases.par_iter().filter(|case| case["file"].is_string()).map(|case| {
        let file = case["file"].as_str().unwrap();
        let rows = case["rows"].as_str().map_or_else(|| file.replace(".py", ".rows.jsonl"), str::to_owned);
        let code = std::fs::read_to_string(folder.join(file)).unwrap();
        let mut functions = code.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
        // The function that is called is the last of its file.
        let function = format!("{}:{}", folder.join(file).display(), functions.next_back().unwrap());
        let named: Vec<&str> = case["expected_findings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let found = findings(&function, &folder.join(rows), &[]);
        let is_missed = case["honest"] == false && named.is_empty();
        match is_missed {
            true => accused(&found).is_empty().then(|| format!("{function} is faulty and gets no finding")),
            false => problem(&function, &named, &found),
        }
    });
    problems.collect()
}

#[test]
fn golden_functions_get_their_findings() {
    let own = problems_of(&PathBuf::from(OWN).join("rewards"));
    assert!(own.len() >= 18);
    let other = std::env::var_os("BURNISH_GOLDENS").map(|other| PathBuf::from(other).join("doctor/rewards"));
    let others = other.filter(|folder| folder.join("manifest.json").is_file()).map(|folder| problems_of(&folder));
    no_problems(own.into_iter().chain(others.into_iter().flatten()).collect());
}

/// Sums with the layout of columns of each library, without responses: the truth is written in many forms.
fn sums(folder: &Path, layout: &str, data_source: &str) -> PathBuf {
    let row = |i: u64| {
        let (a, b) = (13 * i + 7, 29 * i + 14);
        let (question, truth) = (format!("What is {a} + {b}?"), (a + b).to_string());
        match layout {
            "verl" => json!({
                "data_source": data_source, "prompt": [{"role": "user", "content": question}],
                "reward_model": {"style": "rule", "ground_truth": truth},
            }),
            "search" => json!({
                "data_source": data_source, "prompt": [{"role": "user", "content": question}],
                "reward_model": {"ground_truth": {"target": [truth]}},
            }),
            _ => json!({"data_source": "sums", "input": question, "ground_truth": truth}),
        }
    };
    let path = folder.join(format!("{layout}-{}.jsonl", data_source.replace('/', "-")));
    std::fs::write(&path, (0..8).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
    path
}

#[test]
fn functions_of_other_styles_get_their_findings() {
    let folder = tempfile::tempdir().unwrap();
    let rows = sums(folder.path(), "plain", "");
    let path = format!("{OWN}/styles.py");
    let code = std::fs::read_to_string(&path).unwrap();
    let mut cases: Vec<(String, Vec<&str>)> = Vec::new();
    let mut before = "";
    for line in code.lines() {
        if let Some(name) = line.strip_prefix("def ").and_then(|rest| rest.split('(').next()) {
            let named = before.strip_prefix("# ").map(|names| names.split(", ").collect()).unwrap_or_default();
            cases.extend((name.starts_with("good_") || before.starts_with('#')).then(|| (name.to_owned(), named)));
        }
        before = line;
    }
    assert!(cases.len() >= 20, "{cases:?}");
    let problems = cases.par_iter().map(|(name, expected)| {
        let function = format!("{path}:{name}");
        problem(&function, expected, &findings(&function, &rows, &[]))
    });
    no_problems(problems.collect());
}

/// verl's scorers and TRL's functions, by name. Functions that judge the form alone get a warning, which says so.
#[test]
fn no_built_in_function_is_accused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cosine = "+reward.function_kwargs.cosine_scaled_reward.max_len=100";
    let overlong = ["max_completion_len=100", "soft_punish_cache=20"]
        .map(|setting| format!("+reward.function_kwargs.soft_overlong_punishment_reward.{setting}"));
    let overlong: Vec<&str> = overlong.iter().map(String::as_str).collect();
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("data_source", "verl", "openai/gsm8k", &[]),
        ("gsm8k", "verl", "openai/gsm8k", &[]),
        ("gsm8k_flexible", "verl", "openai/gsm8k", &[]),
        ("arithmetic", "verl", "burnish/arithmetic", &[]),
        ("math_reward", "verl", "lighteval/MATH", &[]),
        ("math_dapo", "verl", "math_dapo", &[]),
        ("math_dapo_strict_box", "verl", "math_dapo", &[]),
        ("search_r1", "search", "searchR1_nq", &[]),
        ("cosine_scaled_reward", "verl", "openai/gsm8k", &[cosine]),
        ("think_format_reward", "verl", "openai/gsm8k", &[]),
        ("repetition_penalty_reward", "verl", "openai/gsm8k", &[]),
        ("integer_format", "verl", "openai/gsm8k", &[]),
        ("soft_overlong_punishment_reward", "verl", "openai/gsm8k", overlong.as_slice()),
    ];
    // Cases share files, which are written before any is read.
    let rows: Vec<PathBuf> = cases.iter().map(|(_, layout, source, _)| sums(folder, layout, source)).collect();
    let problems = cases.par_iter().zip(&rows).map(|((name, layout, _, settings), rows)| {
        let found = findings(name, rows, settings);
        let judged = accused(&found).into_iter().filter(|name| *name != "ground_truth_unused").count();
        let is_form = found.iter().any(|(name, verdict, _)| name == "ground_truth_unused" && verdict == "warn");
        let knows_right = found.iter().any(|(name, verdict, _)| name == "empty_wins" && verdict == "pass");
        (judged > 0 || is_form == knows_right).then(|| format!("{name} on {layout} rows: {found:#?}"))
    });
    no_problems(problems.collect());
}
