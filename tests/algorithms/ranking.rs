//! The losses of reward models, against TRL's RewardTrainer and OpenRLHF's PairWiseLoss, LogExpLoss and PRMLoss.

use burnish::algorithm::ranking::{self, PairScores, PairTally, StepTally, StepTarget, pair_loss, step_loss};
use serde_json::Value;

use super::cases::golden_file;

/// Numbers that JSON lacks are strings.
fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

fn close(name: &str, ours: f64, theirs: &Value, tolerance: f64) {
    let theirs = number(theirs);
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1e-3), "{name}: {ours}, theirs {theirs}");
}

#[test]
fn golden_losses_of_pairs() {
    let goldens = golden_file("offline/losses.json");
    let mut seen = 0;
    for (c, case) in goldens["reward_model"].as_array().unwrap().iter().enumerate() {
        let column = |name: &str| case[name].as_array().unwrap().iter().map(number).collect::<Vec<f64>>();
        let (chosen, rejected, margins) = (column("chosen"), column("rejected"), column("margin"));
        for result in case["results"].as_array().unwrap() {
            let name = format!("case {c}, {result}");
            let loss = ranking::find(result["loss_type"].as_str().unwrap_or("sigmoid")).unwrap();
            let has_margin = result["margin"].as_bool().unwrap();
            let center = result.get("center_rewards_coefficient").and_then(Value::as_f64).unwrap_or(0.0);
            let n = chosen.len() as f64;
            let (mut sum, mut tally) = (0.0, PairTally::default());
            for i in 0..chosen.len() {
                let margin = if has_margin { margins[i] } else { 0.0 };
                let pair = PairScores { chosen: chosen[i], rejected: rejected[i], margin };
                let found = pair_loss(loss, pair, center);
                sum += found.loss / n;
                tally.add(pair);
                // Values that overflowed in OpenRLHF have no gradient to compare with.
                for (ours, key) in [(found.d_chosen, "grad_chosen"), (found.d_rejected, "grad_rejected")] {
                    if number(&result[key][i]).is_finite() {
                        close(&format!("{name}, {key}[{i}]"), ours / n, &result[key][i], 1e-6);
                    }
                }
            }
            if number(&result["loss"]).is_finite() {
                close(&name, sum, &result["loss"], 1e-6);
            }
            let metrics = tally.metrics();
            let of = |key: &str| metrics.iter().find(|(name, _)| *name == key).unwrap().1;
            for (key, expected) in result["metrics"].as_object().into_iter().flatten().filter(|(key, _)| *key != "num_tokens") {
                close(&format!("{name}, {key}"), of(key), expected, 1e-5);
            }
            if let Some(acc) = result.get("acc") {
                close(&name, of("accuracy"), acc, 1e-5);
            }
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn golden_losses_of_steps() {
    let goldens = golden_file("offline/losses.json");
    let cases = goldens["openrlhf_prm"].as_array().unwrap();
    assert!(!cases.is_empty());
    for (c, case) in cases.iter().enumerate() {
        let kind = case["kind"].as_str().unwrap();
        let tokens: Option<Vec<usize>> =
            case["reward_token_ids"].as_array().map(|ids| ids.iter().map(|id| id.as_u64().unwrap() as usize).collect());
        let rows = |key: &str| case[key].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap()).collect::<Vec<_>>();
        let (labels, logits, gradients) = (rows("labels"), rows("logits"), rows("grad"));
        let marked: Vec<usize> = (0..labels.len()).filter(|&t| number(labels[t]) >= 0.0).collect();
        let (mut sum, mut tally) = (0.0, StepTally::default());
        for &t in &marked {
            let of_vocabulary = |row: &Value| row.as_array().unwrap().iter().map(|x| number(x) as f32).collect::<Vec<f32>>();
            let all = of_vocabulary(logits[t]);
            let columns = tokens.clone().unwrap_or_else(|| (0..all.len()).collect());
            let numbers: Vec<f32> = columns.iter().map(|&k| all[k]).collect();
            let label = match kind {
                "soft" => StepTarget::Shares([number(labels[t]), 1.0 - number(labels[t])]),
                _ => StepTarget::Class(columns.iter().position(|&k| k as f64 == number(labels[t])).unwrap()),
            };
            let (loss, d, right) = step_loss(&numbers, label);
            sum += loss;
            tally.add(right);
            for (k, d) in columns.iter().zip(d) {
                close(&format!("case {c}, {kind}, token {t}"), d / marked.len() as f64, &gradients[t][*k], 1e-5);
            }
        }
        close(&format!("case {c}, {kind}"), sum / marked.len() as f64, &case["loss"], 1e-5);
        close(&format!("case {c}, {kind}"), tally.metrics()[0].1, &case["acc"], 1e-5);
    }
}

/// A gap at which e^gap overflows has a finite loss and gradient.
#[test]
fn large_gaps_are_stable() {
    for loss in ["sigmoid", "logexp"].map(|name| ranking::find(name).unwrap()) {
        let at = |gap: f64| pair_loss(loss, PairScores { chosen: gap, rejected: 0.0, margin: 0.0 }, 0.0);
        assert_eq!((at(-1e4).loss, at(-1e4).d_chosen, at(1e4).loss, at(1e4).d_chosen), (1e4, -1.0, 0.0, -0.0));
    }
}
