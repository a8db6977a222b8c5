//! Validation metrics against verl's metrics (`validation.json`, written by `scripts/goldens/golden_validation.py`).

use std::collections::BTreeSet;
use std::path::Path;

use burnish::trainer::sampling::val_metrics::{SampleGroup, metrics};
use serde_json::Value;

/// Tolerance for verl's random draws, in standard errors.
const ERRORS: f64 = 5.0;

fn groups(case: &Value) -> Vec<SampleGroup> {
    let texts = |values: &Value| -> Vec<String> {
        values.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let (sources, prompts, infos) = (texts(&case["sources"]), texts(&case["prompts"]), case["infos"].as_object().unwrap());
    let answers = infos.get("pred").map(texts);
    let mut groups = Vec::new();
    for (variable, values) in infos.iter().filter(|(name, _)| *name != "pred") {
        for prompt in prompts.iter().collect::<BTreeSet<_>>() {
            let samples: Vec<usize> = (0..prompts.len()).filter(|&i| prompts[i] == *prompt).collect();
            groups.push(SampleGroup {
                data_source: sources[samples[0]].clone(),
                variable: variable.clone(),
                values: samples.iter().map(|&i| values[i].as_f64().unwrap()).collect(),
                answers: answers.as_ref().map(|answers| samples.iter().map(|&i| answers[i].clone()).collect()),
            });
        }
    }
    groups
}

#[test]
fn golden_validation_metrics_match_verl() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/validation.json");
    let goldens: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let error = ERRORS / goldens["draws"].as_f64().unwrap().sqrt();
    for case in goldens["cases"].as_array().unwrap() {
        let groups = groups(case);
        let ours = metrics(&groups, case["n"].as_u64().unwrap() as usize);
        let theirs = case["metrics"].as_object().unwrap();
        // The names, and with them the choice of core metrics, are verl's; only pass@k is ours.
        let names = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect::<BTreeSet<_>>();
        let known = names(&mut ours.iter().map(|(name, _)| name).filter(|name| !name.contains("/pass@")));
        assert_eq!(known, names(&mut theirs.keys().map(String::as_str)));
        for (name, expected) in theirs {
            let (got, expected) = (ours.get(name).unwrap(), expected.as_f64().unwrap());
            // The error of a mean is the deviation over the root of the number of draws. For a deviation it is less than half of
            // the range of values over that root.
            let tolerance = match name.rsplit_once('/').unwrap() {
                (of, "mean") => error * ours.get(&format!("{of}/std")).unwrap(),
                (_, "std") => {
                    let values = || groups.iter().filter(|g| name.contains(&format!("/{}/", g.variable))).flat_map(|g| &g.values);
                    let [max, min] = [f64::max, f64::min].map(|of| values().copied().reduce(of).unwrap());
                    error * (max - min) / 2.0
                }
                _ => 0.0,
            };
            assert!((got - expected).abs() <= tolerance + 1e-9, "{name}: {got}, verl's draws {expected} ± {tolerance}");
        }
    }
}
