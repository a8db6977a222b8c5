//! Runs with known faults, and sound ones: each faulty run gets its verdict from one of its checks, no sound run fails.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CHECKS, Verdict, diagnose, read};

/// Returns the folders of runs: that of the repository, and `doctor/` of other goldens.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/doctor");
    let other = std::env::var_os("BURNISH_GOLDENS").map(|folder| PathBuf::from(folder).join("doctor"));
    let others = other.into_iter().filter(|folder| folder.join("manifest.json").is_file());
    [own].into_iter().chain(others).collect()
}

#[test]
fn golden_runs_get_their_verdicts() {
    let mut wrong = vec![];
    for folder in folders() {
        let manifest: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        assert!(manifest.len() > 20);
        for case in &manifest {
            let run = case["run"].as_str().unwrap();
            let named: Vec<&str> = case["checks"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            let known = |name: &str| CHECKS.iter().any(|check| check.name == name);
            assert!(named.iter().all(|name| known(name)), "{run}: {named:?}");
            let findings = diagnose(&read(&folder.join(run)).unwrap());
            let said: Vec<(&str, Verdict)> = findings.iter().map(|one| (one.check.name, one.finding.verdict)).collect();
            let is_right = match named.is_empty() {
                true => said.iter().all(|(_, verdict)| *verdict != Verdict::Fail),
                false => {
                    said.iter().any(|(name, verdict)| named.contains(name) && Some(verdict.name()) == case["verdict"].as_str())
                }
            };
            if !is_right {
                let objections: Vec<_> = said.iter().filter(|(_, verdict)| *verdict >= Verdict::Warn).collect();
                wrong.push(format!("{run}: expected {} of {named:?}, got {objections:?}", case["verdict"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
