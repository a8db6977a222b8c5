//! Reads the golden cases of verl, TRL and OpenRLHF; padded rows become ragged columns.

use std::path::PathBuf;
use std::sync::LazyLock;

use burnish::algorithm::loss::{LossColumns, PolicyObjective};
use burnish::algorithm::options::Options;
use burnish::algorithm::policy_loss::{LossOptions, MiniBatch, PolicyLoss};
use burnish::config::{Choices, PpoConfig, Request, load};
use serde_json::Value;

/// The settings of these keys as the built-in configuration has them.
pub(crate) fn built_in(keys: &[&'static str]) -> Options {
    static CONFIG: LazyLock<PpoConfig> =
        LazyLock::new(|| load::<PpoConfig>(&Request::default(), &Choices::default()).unwrap().config);
    burnish::trainer::options(&CONFIG, keys).unwrap()
}

/// The built-in settings of a loss.
pub(crate) fn loss_options(loss: &PolicyLoss) -> LossOptions {
    LossOptions::new(built_in(loss.reads))
}

pub(crate) fn goldens() -> Value {
    golden_file("algorithms.json")
}

pub(crate) fn golden_file(name: &str) -> Value {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from);
    let path = folder.join(name);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// One case; its padded rows become ragged columns of the unpadded positions.
pub(crate) struct Case<'a> {
    pub json: &'a Value,
    pub name: String,
    pub exists: Vec<Vec<f64>>,
    pub offsets: Vec<usize>,
    pub mask: Vec<f32>,
}

pub(crate) fn rows(value: &Value) -> Vec<Vec<f64>> {
    let row = |row: &Value| row.as_array().unwrap().iter().map(number).collect();
    value.as_array().unwrap().iter().map(row).collect()
}

impl<'a> Case<'a> {
    pub(crate) fn all(goldens: &'a Value) -> Vec<Self> {
        let cases = goldens["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        cases.iter().enumerate().map(|(i, json)| Self::new(json, i)).collect()
    }

    pub(crate) fn new(json: &'a Value, index: usize) -> Self {
        let exists = rows(&json["attention_mask"]);
        let mut offsets = vec![0];
        for row in &exists {
            offsets.push(offsets[offsets.len() - 1] + row.iter().filter(|&&a| a != 0.0).count());
        }
        let mut case = Self { json, name: format!("case {index}"), exists, offsets, mask: Vec::new() };
        case.mask = case.column(&json["response_mask"]);
        case
    }

    pub(crate) fn column(&self, padded: &Value) -> Vec<f32> {
        let rows = rows(padded);
        let tokens = rows.iter().flatten().zip(self.exists.iter().flatten());
        tokens.filter(|&(_, &exists)| exists != 0.0).map(|(&v, _)| v as f32).collect()
    }

    pub(crate) fn input(&self, key: &str) -> Vec<f32> {
        self.column(&self.json[key])
    }

    pub(crate) fn rows(&self) -> usize {
        self.exists.len()
    }

    pub(crate) fn width(&self) -> usize {
        self.exists[0].len()
    }

    /// The entries of a table of results that verl computed without an error.
    pub(crate) fn results(&self, table: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.json[table].as_object().unwrap().iter().filter(|(_, result)| result.get("error").is_none())
    }

    /// The loss of the whole case as one micro-batch of one mini-batch.
    pub(crate) fn loss(
        &self,
        objective: &PolicyObjective,
        advantages: &[f32],
        weights: &[f32],
        is_weights: Option<&[f32]>,
    ) -> Loss {
        let (log_prob, old_log_prob) = (self.input("log_probs"), self.input("old_log_probs"));
        let reference = self.json.get("ref_log_probs").map(|column| self.column(column));
        let entropy = self.json.get("entropies").map_or_else(|| vec![0.0; self.mask.len()], |column| self.column(column));
        let mini_batch = MiniBatch {
            offsets: &self.offsets,
            mask: &self.mask,
            log_prob: &log_prob,
            entropy: &entropy,
            old_log_prob: &old_log_prob,
            advantages,
            ref_log_prob: reference.as_deref(),
            groups: &[],
            options: &objective.options,
        };
        let prepared = objective.prepare(&mini_batch, &mut || 0.5);
        let result = objective.evaluate(&LossColumns {
            offsets: &self.offsets,
            mask: &self.mask,
            log_prob: &log_prob,
            entropy: &entropy,
            old_log_prob: Some(&old_log_prob),
            ref_log_prob: reference.as_deref(),
            advantages,
            weights,
            penalty_weights: weights,
            rollout_is_weights: is_weights,
            full_kl: None,
            factor: prepared.factor.as_deref(),
            entropy_mask: prepared.entropy_mask.as_deref(),
            behaviour_log_prob: None,
            entropy_bonus: None,
        });
        let mut metrics: Vec<(String, f64)> = result.metrics.iter().map(|m| (m.name.to_string(), m.sum / m.count)).collect();
        metrics.extend(result.terms.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        Loss { loss: result.loss, gradient: result.d_log_prob, metrics }
    }
}

pub(crate) struct Loss {
    pub loss: f64,
    pub gradient: Vec<f32>,
    pub metrics: Vec<(String, f64)>,
}

/// Compares with a relative tolerance of 1e-5; for values that cancelled to almost 0, with 1e-6 of the column's maximum.
pub(crate) fn assert_close(label: &str, ours: &[f32], golden: &[f32]) {
    assert_eq!(ours.len(), golden.len(), "{label}");
    let largest = golden.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for (t, (a, b)) in ours.iter().zip(golden).enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs() + 1e-6 * largest, "{label}, token {t}: {a}, golden {b}");
    }
}

pub(crate) fn assert_number(label: &str, ours: f64, golden: f64) {
    assert!((ours - golden).abs() <= 1e-5 * golden.abs() + 1e-7, "{label}: {ours}, golden {golden}");
}
