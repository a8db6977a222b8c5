//! Our algorithms against the numbers verl returned, values and gradients, for every case in `algorithms.json`.

use std::path::PathBuf;

use burnish::algorithm::advantage::{self, AdvantageInput};
use burnish::algorithm::aggregate::{self, token_weights};
use burnish::algorithm::kl::{self, KlController};
use burnish::algorithm::loss::{LossColumns, PolicyObjective};
use burnish::algorithm::policy_loss::{self, ClipOptions};
use serde_json::Value;

fn goldens() -> Value {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from);
    let path = folder.join("algorithms.json");
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// One case; its padded rows become ragged columns of the positions that exist.
struct Case<'a> {
    json: &'a Value,
    name: String,
    exists: Vec<Vec<f64>>,
    offsets: Vec<usize>,
    mask: Vec<f32>,
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().unwrap().iter().map(number).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

impl<'a> Case<'a> {
    fn all(goldens: &'a Value) -> Vec<Self> {
        let cases = goldens["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        cases.iter().enumerate().map(|(i, json)| Self::new(json, i)).collect()
    }

    fn new(json: &'a Value, index: usize) -> Self {
        let exists = rows(&json["attention_mask"]);
        let mut offsets = vec![0];
        for row in &exists {
            offsets.push(offsets[offsets.len() - 1] + row.iter().filter(|&&a| a != 0.0).count());
        }
        let mut case = Self { json, name: format!("case {index}"), exists, offsets, mask: Vec::new() };
        case.mask = case.column(&json["response_mask"]);
        case
    }

    fn column(&self, padded: &Value) -> Vec<f32> {
        let rows = rows(padded);
        let tokens = rows.iter().flatten().zip(self.exists.iter().flatten());
        tokens.filter(|&(_, &exists)| exists != 0.0).map(|(&v, _)| v as f32).collect()
    }

    fn input(&self, key: &str) -> Vec<f32> {
        self.column(&self.json[key])
    }

    fn width(&self) -> usize {
        self.exists[0].len()
    }

    /// The entries of a table of results that verl computed without an error.
    fn results(&self, table: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.json[table].as_object().unwrap().iter().filter(|(_, result)| result.get("error").is_none())
    }

    /// The loss of the whole case as one micro-batch.
    fn loss(&self, objective: &PolicyObjective, advantages: &[f32], weights: &[f32], is_weights: Option<&[f32]>) -> Loss {
        let result = objective.evaluate(&LossColumns {
            offsets: &self.offsets,
            mask: &self.mask,
            log_prob: &self.input("log_probs"),
            entropy: &vec![0.0; self.mask.len()],
            old_log_prob: Some(&self.input("old_log_probs")),
            ref_log_prob: Some(&self.input("ref_log_probs")),
            advantages,
            weights,
            rollout_is_weights: is_weights,
        });
        let mut metrics: Vec<(&str, f64)> = result.metrics.iter().map(|m| (m.name, m.sum / m.count)).collect();
        metrics.extend(&result.terms);
        Loss { loss: result.loss, gradient: result.d_log_prob, metrics }
    }
}

struct Loss {
    loss: f64,
    gradient: Vec<f32>,
    metrics: Vec<(&'static str, f64)>,
}

/// 1e-5 relative; numbers that cancelled to almost nothing are held to 1e-6 of the column's largest.
fn assert_close(what: &str, ours: &[f32], golden: &[f32]) {
    assert_eq!(ours.len(), golden.len(), "{what}");
    let largest = golden.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for (t, (a, b)) in ours.iter().zip(golden).enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs() + 1e-6 * largest, "{what}, token {t}: {a}, golden {b}");
    }
}

fn assert_number(what: &str, ours: f64, golden: f64) {
    assert!((ours - golden).abs() <= 1e-5 * golden.abs() + 1e-7, "{what}: {ours}, golden {golden}");
}

#[test]
fn golden_advantages() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        let group: Vec<usize> = case.json["uid"].as_array().unwrap().iter().map(|u| number(u) as usize).collect();
        for (key, result) in case.results("advantage") {
            let Some(estimator) = advantage::find(key.split('|').next().unwrap()) else { continue };
            let output = (estimator.run)(&AdvantageInput {
                offsets: &case.offsets,
                rewards: &case.input("token_level_rewards"),
                mask: &case.mask,
                group: &group,
                gamma: number(&case.json["gamma"]),
                norm_adv_by_std_in_grpo: !key.ends_with("norm_adv_by_std_in_grpo=False"),
            });
            let what = format!("{} {key}", case.name);
            assert_close(&format!("{what} advantages"), &output.advantages, &case.column(&result["advantages"]));
            assert_close(&format!("{what} returns"), &output.returns, &case.column(&result["returns"]));
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn golden_policy_losses() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        let (old, rollout) = (case.input("old_log_probs"), case.input("rollout_log_probs"));
        for (key, result) in case.results("policy_loss") {
            let parts: Vec<&str> = key.split('|').collect();
            let Some(policy_loss) = policy_loss::find(parts[0]) else { continue };
            let Some(mode) = aggregate::find(parts[1]) else { continue };
            let option = |name: &str| {
                let settings = parts[2..].iter().flat_map(|part| part.split(",clip_"));
                settings.filter_map(|s| s.trim_start_matches("clip_").strip_prefix(name)?.strip_prefix('=')).next().unwrap()
            };
            let clip = ClipOptions { low: option("low").parse().unwrap(), high: option("high").parse().unwrap(), c: 3.0 };
            let is_weights = option("rollout_is_weights").strip_prefix("token,").map(|threshold| {
                let most: f32 = threshold.parse().unwrap();
                let ratio = old.iter().zip(&rollout).zip(&case.mask);
                ratio.map(|((o, r), m)| (o - r).exp().min(most) * m).collect::<Vec<f32>>()
            });
            let objective = PolicyObjective { policy_loss, clip, entropy_coeff: 0.0, kl_loss: None };
            let weights = token_weights(mode, &case.offsets, &case.mask, None, case.width());
            let ours = case.loss(&objective, &case.input("advantages_in"), &weights, is_weights.as_deref());

            let what = format!("{} {key}", case.name);
            assert_number(&format!("{what} loss"), ours.loss, number(&result["loss"]));
            assert_close(&format!("{what} gradient"), &ours.gradient, &case.column(&result["grad"]));
            for (name, golden) in result["metrics"].as_object().unwrap() {
                let value = ours.metrics.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{what}: no {name}")).1;
                assert_number(&format!("{what} {name}"), value, number(golden));
            }
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// With advantage 0 and the mask as weights, the loss is the masked sum of the KL estimate.
#[test]
fn golden_kl_estimators() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        for (key, result) in case.results("kl_penalty") {
            let Some(penalty) = kl::find(key) else { continue };
            let what = format!("{} {key}", case.name);
            let values = penalty.values(&case.input("log_probs"), &case.input("ref_log_probs"));
            let golden = case.column(&result["value"]);
            assert_close(&format!("{what} value"), &values, &golden);

            let objective = PolicyObjective {
                policy_loss: policy_loss::find("vanilla").unwrap(),
                clip: ClipOptions { low: 0.2, high: 0.2, c: 3.0 },
                entropy_coeff: 0.0,
                kl_loss: Some((penalty, 1.0)),
            };
            let ours = case.loss(&objective, &vec![0.0; case.mask.len()], &case.mask, None);
            assert_close(&format!("{what} gradient"), &ours.gradient, &case.column(&result["grad"]));
            let sum = golden.iter().zip(&case.mask).map(|(&v, &m)| f64::from(v) * f64::from(m)).sum();
            assert_number(&format!("{what} sum"), ours.loss, sum);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn golden_adaptive_kl_controller() {
    let goldens = goldens();
    let golden = &goldens["adaptive_kl"];
    let [coef, target, horizon] = ["init_kl_coef", "target_kl", "horizon"].map(|key| number(&golden[key]));
    let mut controller = KlController::new("adaptive", coef, target, horizon).unwrap();
    let updates = golden["updates"].as_array().unwrap();
    assert!(!updates.is_empty());
    for update in updates {
        controller.update(number(&update["current_kl"]), number(&update["n_steps"]) as usize);
        assert_number("adaptive KL coefficient", controller.coef(), number(&update["value"]));
    }
}
