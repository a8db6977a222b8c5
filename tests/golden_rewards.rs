//! Scores of verl's own reward functions, compared with ours.

use std::path::{Path, PathBuf};

use burnish::reward::gsm8k::{Method, compute_score};
use burnish::reward::{self, ScoreInput};
use serde_json::Value;

fn goldens() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from)
}

#[test]
fn golden_rewards_match_verl() {
    let path = goldens().join("rewards.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut checked, mut skipped) = (0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        if !case["fn"].as_str().unwrap().starts_with("gsm8k.") {
            skipped += 1;
            continue;
        }
        let (solution, ground_truth) = (case["args"][0].as_str().unwrap(), &case["args"][1]);
        let (kwargs, expected) = (&case["kwargs"], case["result"].as_f64().unwrap());
        let method = match kwargs["method"].as_str() {
            None | Some("strict") => Method::Strict,
            Some("flexible") => Method::Flexible,
            Some(other) => panic!("unknown method {other}"),
        };
        let number = |name: &str, default: f64| kwargs[name].as_f64().unwrap_or(default);
        let truth = ground_truth.as_str().unwrap();
        let ours = compute_score(solution, truth, method, number("format_score", 0.0), number("score", 1.0));
        assert_eq!(ours, expected, "{line}");
        if kwargs.as_object().unwrap().is_empty() {
            let input = ScoreInput { data_source: "openai/gsm8k", solution, ground_truth, extra_info: &Value::Null };
            let scorer = reward::find(input.data_source).unwrap();
            assert_eq!(f64::from((scorer.run)(&input).unwrap().score), expected, "{line}");
        }
        checked += 1;
    }
    println!("{checked} golden rewards checked, {skipped} of functions that do not exist here skipped");
    assert!(checked > 0, "{}: no gsm8k case", path.display());
}

#[test]
fn sources_are_checked_and_abstentions_are_errors() {
    assert!(reward::check_sources(["openai/gsm8k", "burnish/arithmetic"]).is_ok());
    let message = reward::check_sources(["openai/gsm8k", "openai/gsm8"]).unwrap_err().to_string();
    assert!(message.contains("\"openai/gsm8\"") && message.contains("Did you mean \"openai/gsm8k\"?"), "{message}");
    let score = |solution, truth: Value| {
        let input = ScoreInput { data_source: "burnish/arithmetic", solution, ground_truth: &truth, extra_info: &Value::Null };
        (reward::find(input.data_source).unwrap().run)(&input).map(|score| score.score)
    };
    assert_eq!(score(" 95\n", "95".into()).unwrap(), 1.0);
    assert_eq!(score("95 or so", "95".into()).unwrap(), 0.0);
    assert!(score("95", 95.into()).unwrap_err().to_string().contains("must be text"));
}
