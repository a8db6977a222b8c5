//! Built-in functions that need a package or a service: none is accused, and without the service it is named.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rayon::prelude::*;
use serde_json::json;

use super::{accused, findings_of, no_problems, sums, words};
use crate::common::trainer;

const SERVICES: &str = "tests/data/doctor/services";

/// A command whose Python has a comparison of plain numbers with the interface of math-verify. The package itself takes seconds
/// for thousands of open brackets, which `slow_growth` rightly names.
fn with_math_verify(words: &[&str]) -> Command {
    let mut command = trainer(words);
    command.env("PYTHONPATH", fs::canonicalize(SERVICES).unwrap());
    command
}

#[test]
fn functions_that_use_math_verify_are_not_accused() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("math_verify", "lighteval/MATH"),
        ("accuracy_reward", "lighteval/MATH"),
        ("reasoning_accuracy_reward", "lighteval/MATH"),
        ("geo3k", "hiyouga/geometry3k"),
        ("prime_math", "numina_olympiads"),
        ("data_source", "hiyouga/geometry3k"),
        ("data_source", "numina_olympiads"),
    ];
    let rows: Vec<PathBuf> = cases.iter().map(|(_, source)| sums(folder.path(), "verl", source)).collect();
    let problems = cases.par_iter().zip(&rows).map(|((name, source), rows)| {
        let found = findings_of(name, with_math_verify(&words(name, rows, &["reward.timeout=10"])));
        let knows_right = found.iter().any(|(name, verdict, _)| name == "empty_wins" && verdict == "pass");
        (!accused(&found).is_empty() || !knows_right).then(|| format!("{name} on rows of {source}: {found:#?}"))
    });
    no_problems(problems.collect());
}

/// The service of programs, which ends with the test.
struct Sandbox(Child);

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts the service, and returns its address.
fn sandbox() -> (Sandbox, String) {
    let mut service = Command::new("python3").arg(Path::new(SERVICES).join("sandbox.py")).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (Sandbox(service), format!("reward.sandbox_fusion.url=http://127.0.0.1:{}/run_code", port.trim()))
}

/// Each row asks for another program, and has one that passes all cases and one that passes none.
fn programs(folder: &Path) -> PathBuf {
    let program = |factor: i64| format!("I multiply.\n```python\nprint(int(input()) * {factor})\n```");
    let row = |factor: i64| {
        let cases = json!({"inputs": ["3\n", "8\n"], "outputs": [format!("{}\n", 3 * factor), format!("{}\n", 8 * factor)]});
        json!({
            "data_source": "codecontests", "prompt": [{"role": "user", "content": format!("Print the input times {factor}.")}],
            "reward_model": {"ground_truth": cases.to_string()},
            "responses": [program(factor), program(-factor)], "right": [true, false],
        })
    };
    let path = folder.join("programs.jsonl");
    fs::write(&path, (2..6).map(|factor| format!("{}\n", row(factor))).collect::<String>()).unwrap();
    path
}

#[test]
fn programs_are_judged_by_the_sandbox_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rows = programs(folder.path());
    for name in ["sandbox_fusion", "data_source"] {
        let output = trainer(&words(name, &rows, &[])).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("reward.sandbox_fusion.url"), "{name}: {said}");
        let (_service, address) = sandbox();
        let found = findings_of(name, trainer(&words(name, &rows, &[address.as_str(), "reward.timeout=10"])));
        let knows_right = found.iter().any(|(name, verdict, _)| name == "empty_wins" && verdict == "pass");
        assert!(accused(&found).is_empty() && knows_right, "{name}: {found:#?}");
    }
}
