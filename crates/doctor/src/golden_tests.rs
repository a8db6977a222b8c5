//! Runs with known faults, and sound ones: each faulty run gets its verdict from one of its checks, no sound run fails.
//!
//! A manifest is that of `tests/data/doctor`, or one in `$BURNISH_GOLDENS/doctor` or in a folder below it, in its own words.

mod manifest;

use std::path::{Path, PathBuf};

use super::{CHECKS, Verdict, diagnose, read};
use manifest::{RunCase, cases};

/// Returns the folders of manifests: that of the repository, and those of other goldens.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/doctor");
    let other = std::env::var_os("BURNISH_GOLDENS").map(|folder| PathBuf::from(folder).join("doctor"));
    let below = other.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten().map(|entry| entry.path());
    let mut others: Vec<PathBuf> = below.chain(other.clone()).filter(|folder| folder.join("manifest.json").is_file()).collect();
    others.sort();
    [own].into_iter().chain(others).collect()
}

/// Returns the difference between the diagnosis of a run and its case.
fn difference(case: &RunCase) -> Option<String> {
    let name = case.path.display();
    let evidence = match read(&case.path) {
        Ok(evidence) => evidence,
        Err(error) => return Some(format!("{name}: {error:#}")),
    };
    let findings = diagnose(&evidence);
    let said: Vec<(&str, Verdict)> = findings.iter().map(|one| (one.check.name, one.finding.verdict)).collect();
    let is_named = |name: &str| case.checks.is_empty() || case.checks.contains(&name);
    let is_right = match case.is_sound {
        true => said.iter().all(|(_, verdict)| *verdict != Verdict::Fail),
        false => said.iter().any(|(name, verdict)| is_named(name) && case.verdicts.contains(verdict)),
    };
    let objections: Vec<_> = said.iter().filter(|(_, verdict)| *verdict >= Verdict::Warn).collect();
    (!is_right).then(|| format!("{name}: expected {:?} of {:?}, got {objections:?}", case.verdicts, case.checks))
}

#[test]
fn golden_runs_get_their_verdicts() {
    let mut wrong = vec![];
    for (number, folder) in folders().iter().enumerate() {
        let found = cases(folder).unwrap();
        let named = |case: &RunCase| case.checks.iter().all(|name| CHECKS.iter().any(|check| check.name == *name));
        assert!(found.iter().all(named), "{}: names of unknown checks", folder.display());
        // Each case of the repository names its checks.
        assert!(number > 0 || found.len() > 20 && found.iter().all(|case| case.is_sound == case.checks.is_empty()));
        wrong.extend(found.iter().filter_map(difference));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
