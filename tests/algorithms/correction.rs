//! Rollout correction: weights, rejection and metrics, and the loss `bypass_mode`. Every value that verl reports is compared.

use burnish::algorithm::aggregate::{self, token_weights};
use burnish::algorithm::loss::{LossColumns, PolicyObjective};
use burnish::algorithm::policy_loss::{self, LossOptions, MiniBatch};
use burnish::algorithm::rollout_correction::{BypassLoss, Corrected, CorrectionSettings, RolloutCorrection};
use serde_json::Value;

use crate::cases::{Case, assert_close, assert_number, built_in, golden_file, goldens, number, rows};

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn settings(json: &Value) -> CorrectionSettings {
    CorrectionSettings {
        rollout_is: text(&json["rollout_is"]),
        rollout_is_threshold: text(&json["rollout_is_threshold"]).or(CorrectionSettings::default().rollout_is_threshold),
        rollout_is_threshold_lower: None,
        rollout_is_batch_normalize: json["rollout_is_batch_normalize"] == true,
        rollout_rs: text(&json["rollout_rs"]),
        rollout_rs_threshold: text(&json["rollout_rs_threshold"]),
        rollout_rs_threshold_lower: json["rollout_rs_threshold_lower"].as_f64(),
        rollout_token_veto_threshold: json["rollout_token_veto_threshold"].as_f64(),
        count_rejected: false,
    }
}

fn assert_metrics(label: &str, ours: &[(String, f64)], golden: &Value) {
    for (name, golden) in golden.as_object().unwrap() {
        let value = ours.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{label}: no {name}")).1;
        assert_number(&format!("{label} {name}"), value, number(golden));
    }
}

/// Compares one result; `column` converts the file's values to a ragged column.
fn assert_corrected(label: &str, ours: &Corrected, golden: &Value, mask: &str, column: impl Fn(&Value) -> Vec<f32>) {
    assert_eq!(ours.weights.is_some(), !golden["weights"].is_null(), "{label}");
    if let Some(weights) = &ours.weights {
        assert_close(&format!("{label} weights"), weights, &column(&golden["weights"]));
    }
    assert_eq!(ours.mask, column(&golden[mask]), "{label} mask");
    assert_metrics(label, &ours.metrics, &golden["metrics"]);
}

#[test]
fn golden_rollout_corrections() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        let (old, rollout) = (case.input("old_log_probs"), case.input("rollout_log_probs"));
        for (key, result) in case.results("rollout_correction") {
            let (kind, rest) = key.split_once('=').unwrap();
            let parts: Vec<&str> = rest.split(',').collect();
            let [name, threshold] = [0, 1].map(|i| Some(parts[i].to_owned()));
            let mut settings =
                CorrectionSettings { rollout_is_batch_normalize: parts.len() > 2, ..CorrectionSettings::default() };
            match kind {
                "is" => (settings.rollout_is, settings.rollout_is_threshold) = (name, threshold),
                _ => (settings.rollout_rs, settings.rollout_rs_threshold) = (name, threshold),
            }
            let ours = RolloutCorrection::new(&settings).unwrap().apply(&case.offsets, &case.mask, &old, &rollout);
            assert_corrected(&format!("{} {key}", case.name), &ours, result, "response_mask", |v| case.column(v));
            // Only metrics of verl are reported.
            assert_eq!(ours.metrics.len(), result["metrics"].as_object().unwrap().len(), "{key}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// A batch of `rollout-correction.json`.
struct Batch<'a> {
    json: &'a Value,
    offsets: Vec<usize>,
    mask: Vec<f32>,
}

fn flat(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| number(v) as f32).collect()
}

impl<'a> Batch<'a> {
    fn all(goldens: &'a Value) -> Vec<Self> {
        let cases = goldens["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        let batch = |json: &'a Value| {
            let mut offsets = vec![0];
            for row in rows(&json["mask"]) {
                offsets.push(offsets[offsets.len() - 1] + row.len());
            }
            let mut batch = Self { json, offsets, mask: Vec::new() };
            batch.mask = batch.column("mask");
            batch
        };
        cases.iter().map(batch).collect()
    }

    fn column(&self, name: &str) -> Vec<f32> {
        rows(&self.json[name]).into_iter().flatten().map(|v| v as f32).collect()
    }

    fn results(&self, table: &str) -> &'a [Value] {
        let results = self.json[table].as_array().unwrap();
        assert!(!results.is_empty(), "{table}");
        results
    }

    fn apply(&self, settings: &CorrectionSettings) -> Corrected {
        let correction = RolloutCorrection::new(settings).unwrap();
        correction.apply(&self.offsets, &self.mask, &self.column("old_log_prob"), &self.column("rollout_log_prob"))
    }
}

/// Combinations, every criterion, and IcePop. Also verl 0.7: its criteria, whose bounds apply to the inverse, and its veto.
#[test]
fn golden_combined_and_older_corrections() {
    let goldens = golden_file("rollout-correction.json");
    for batch in Batch::all(&goldens) {
        for golden in batch.results("corrections").iter().chain(batch.results("corrections_0_7")) {
            let ours = batch.apply(&settings(&golden["settings"]));
            assert_corrected(&golden["settings"].to_string(), &ours, golden, "mask", flat);
        }
    }
}

/// The corrections of OpenRLHF and TRL, by the table in the module's documentation.
#[test]
fn golden_corrections_of_other_libraries() {
    let goldens = golden_file("rollout-correction.json");
    let some = |text: &str| Some(text.to_owned());
    for batch in Batch::all(&goldens) {
        for golden in batch.results("openrlhf") {
            let [low, high] = [0, 1].map(|i| number(&golden["bounds"][i]));
            let mut settings = CorrectionSettings { rollout_is: some("token"), ..CorrectionSettings::default() };
            match golden["type"].as_str().unwrap() {
                "tis" => {
                    settings.rollout_is_threshold = Some(high.to_string());
                    settings.rollout_is_threshold_lower = Some(low);
                }
                "icepop" => settings.rollout_is_threshold = Some(format!("{low}_{high}")),
                _ => {
                    settings.rollout_is_threshold = some("inf");
                    settings.rollout_rs = some("geometric");
                    settings.rollout_rs_threshold = Some(format!("{low}_{high}"));
                }
            }
            let ours = batch.apply(&settings);
            let applied: Vec<f32> = ours.weights.unwrap().iter().zip(&ours.mask).map(|(w, m)| w * m).collect();
            assert_close(&format!("OpenRLHF {} {low} {high}", golden["type"]), &applied, &flat(&golden["weights"]));
        }
        for golden in batch.results("trl") {
            let mode = golden["mode"].as_str().unwrap();
            let (level, kind) = mode.split_once('_').unwrap();
            let (low, high) = (golden["low"].as_f64(), number(&golden["high"]));
            let zeroes = kind == "mask";
            let threshold = if zeroes { format!("{}_{high}", low.unwrap_or(0.0)) } else { high.to_string() };
            let ours = batch.apply(&CorrectionSettings {
                rollout_is: some(level),
                rollout_is_threshold: Some(threshold),
                rollout_is_threshold_lower: low.filter(|_| !zeroes),
                ..CorrectionSettings::default()
            });
            assert_close(&format!("TRL {mode} {low:?} {high}"), &ours.weights.unwrap(), &flat(&golden["weights"]));
        }
    }
}

#[test]
fn golden_bypass_mode() {
    let goldens = golden_file("rollout-correction.json");
    for batch in Batch::all(&goldens) {
        let [log_prob, rollout, advantages] = ["log_prob", "rollout_log_prob", "advantages"].map(|name| batch.column(name));
        let entropy = vec![0.0; batch.mask.len()];
        for golden in batch.results("bypass_mode") {
            let policy_loss = policy_loss::find("bypass_mode").unwrap();
            let options = LossOptions {
                settings: built_in(policy_loss.reads).with("clip_ratio_high", 0.28),
                rollout_correction: Some(RolloutCorrection::new(&settings(&golden["settings"])).unwrap()),
                bypass_loss: match golden["loss_type"].as_str().unwrap() {
                    "ppo_clip" => BypassLoss::PpoClip,
                    _ => BypassLoss::Reinforce,
                },
            };
            let objective = PolicyObjective {
                policy_loss,
                options,
                entropy_coeff: 0.0,
                kl_loss: None,
                top_entropy_quantile: 1.0,
                off_policy_mask: None,
            };
            let prepared = objective.prepare(
                &MiniBatch {
                    offsets: &batch.offsets,
                    mask: &batch.mask,
                    log_prob: &log_prob,
                    entropy: &entropy,
                    old_log_prob: &rollout,
                    advantages: &advantages,
                    ref_log_prob: None,
                    groups: &[],
                    options: &objective.options,
                },
                &mut || 0.5,
            );
            let mode = aggregate::find(golden["aggregation"].as_str().unwrap()).unwrap();
            let ours = objective.evaluate(&LossColumns {
                offsets: &batch.offsets,
                mask: &batch.mask,
                log_prob: &log_prob,
                entropy: &entropy,
                old_log_prob: Some(&rollout),
                ref_log_prob: None,
                advantages: &advantages,
                weights: &token_weights(mode, &batch.offsets, &batch.mask, batch.offsets.len() - 1, None, 1),
                penalty_weights: &token_weights(mode, &batch.offsets, &batch.mask, batch.offsets.len() - 1, None, 1),
                rollout_is_weights: None,
                full_kl: None,
                factor: prepared.factor.as_deref(),
                entropy_mask: None,
                behaviour_log_prob: None,
                entropy_bonus: None,
            });
            let label = format!("{} {} {}", golden["loss_type"], mode.name, golden["settings"]);
            assert_number(&format!("{label} loss"), ours.loss, number(&golden["loss"]));
            assert_close(&format!("{label} gradient"), &ours.d_log_prob, &flat(&golden["gradient"]));
            let mut metrics = prepared.metrics;
            metrics.extend(ours.metrics.iter().map(|m| (m.name.to_string(), m.sum / m.count)));
            assert_metrics(&label, &metrics, &golden["metrics"]);
        }
    }
}
