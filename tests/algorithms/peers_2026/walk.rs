//! Walks the cases of `algorithms-2026.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::case::{PeerCase, number};
use super::entry::{TABLES, find};
use super::not_yet::NOT_YET;
use crate::cases::golden_file;

const FILE: &str = "algorithms-2026.json";

#[test]
fn algorithms_of_peers_have_the_numbers_of_peers() {
    let goldens = golden_file(FILE);
    let cases = goldens["cases"].as_array().unwrap();
    let mut failures = Vec::new();
    // For each reason of a deviation: true if some case differs.
    let mut deviations: BTreeMap<&str, bool> = BTreeMap::new();
    for json in cases {
        let case = PeerCase::new(json);
        let Some(entry) = find(json["algorithm"].as_str().unwrap()) else { continue };
        let tolerance = entry.precision.tolerance(json["dtype"].as_str().unwrap());
        let ours = (entry.run)(&case);
        let mut compared = 0;
        let golden = &json["out"];
        let mut differences = Vec::new();
        differ("out", &ours, golden, tolerance, &mut compared, &mut differences);
        assert!(compared > 0 || json.get("error").is_some(), "{}: nothing is compared", case.id());
        for name in golden.as_object().into_iter().flatten().map(|(name, _)| name) {
            let known = ours.get(name).is_some() || entry.left_out.iter().any(|(left_out, _)| left_out == name);
            assert!(known, "{}: `{name}` is neither compared nor in `left_out`", case.id());
        }
        match (entry.deviates)(&case) {
            Some(reason) => *deviations.entry(reason).or_default() |= !differences.is_empty(),
            None => failures.extend(differences.first().map(|difference| format!("{}: {difference}", case.id()))),
        }
    }
    for (reason, differs) in deviations {
        assert!(differs, "no case differs for the reason: {reason}");
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

/// Every algorithm of the file has an entry or a reason, and no entry of either table is stale.
#[test]
fn no_algorithm_of_a_peer_is_forgotten() {
    let goldens = golden_file(FILE);
    let named: BTreeSet<&str> = goldens["cases"].as_array().unwrap().iter().map(|c| c["algorithm"].as_str().unwrap()).collect();
    let entries: Vec<&str> = TABLES.iter().flat_map(|table| *table).map(|entry| entry.algorithm).collect();
    let later: Vec<&str> = NOT_YET.iter().map(|(name, _)| *name).collect();
    for name in &named {
        let times = entries.iter().chain(&later).filter(|known| *known == name).count();
        assert_eq!(times, 1, "`{name}` needs an entry in one table, or a reason in NOT_YET, and not both");
    }
    for name in entries.iter().chain(&later) {
        assert!(named.contains(name), "`{name}` is not an algorithm of {FILE}");
    }
}

/// Adds a description of each difference between our value and the file's; counts the values that are compared.
fn differ(place: &str, ours: &Value, golden: &Value, tolerance: f64, compared: &mut usize, differences: &mut Vec<String>) {
    match (ours, golden) {
        (Value::Null, _) => {}
        (Value::Object(ours), _) => {
            for (key, value) in ours {
                differ(&format!("{place}.{key}"), value, &golden[key], tolerance, compared, differences);
            }
        }
        (Value::Array(ours), Value::Array(golden)) if ours.len() == golden.len() => {
            for (i, (ours, golden)) in ours.iter().zip(golden).enumerate() {
                differ(&format!("{place}[{i}]"), ours, golden, tolerance, compared, differences);
            }
        }
        (Value::Number(_), Value::Number(_) | Value::String(_)) => {
            *compared += 1;
            let (a, b) = (number(ours), number(golden));
            let equal = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0);
            if !equal {
                differences.push(format!("{place}: {a}, the peer has {b}"));
            }
        }
        _ => {
            *compared += 1;
            if ours != golden {
                differences.push(format!("{place}: {ours}, the peer has {golden}"));
            }
        }
    }
}
