//! Corrections of the difference between generation and training.

use burnish::algorithm::aggregate::{self, token_weights, trained_sequences};
use burnish::algorithm::loss::{LossColumns, LossResult};
use burnish::algorithm::policy_loss;
use burnish::algorithm::rollout_correction::{Corrected, CorrectionSettings, RolloutCorrection};
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::entry::{Entry, Precision, never};
use crate::cases::loss_options;
use crate::losses::objective;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        algorithm: "slime_tis",
        precision: Precision::Column,
        run: slime_tis,
        left_out: &[("clipped", "a sum over tokens that includes those of tools")],
        deviates: never,
    },
    Entry { algorithm: "gate_ratio", precision: Precision::Column, run: gate, left_out: &[], deviates: never },
    Entry { algorithm: "gate_binary_kl", precision: Precision::Column, run: gate, left_out: &[], deviates: never },
    Entry { algorithm: "gate_tv", precision: Precision::Column, run: gate, left_out: &[], deviates: never },
    Entry {
        algorithm: "gate_with_gspo",
        precision: Precision::Column,
        run: gspo_of_openrlhf,
        left_out: &[("grad", GRAD_OF_GSPO), ("clip_ratio", CLIP_OF_GSPO), ("ppo_kl", CLIP_OF_GSPO)],
        deviates: never,
    },
    Entry {
        algorithm: "skyrl_off_policy_correction",
        precision: Precision::Column,
        run: skyrl,
        left_out: &[("metrics", "verl's metrics of the same quantities have other names and counts")],
        deviates: skyrl_deviates,
    },
];

const GRAD_OF_GSPO: &str = "the advantages of a response differ here, and a token's gradient is by its own, there by their mean";
const CLIP_OF_GSPO: &str = "a metric of the ratio of a response, which is that of a token here";

fn corrected(case: &PeerCase, settings: &CorrectionSettings, mask: &[f32]) -> Corrected {
    let [old, rollout] = ["old_log_probs", "rollout_log_probs"].map(|name| case.column(name));
    RolloutCorrection::new(settings).unwrap().apply(&case.offsets, mask, &old, &rollout)
}

/// `tis_clip_low` and `tis_clip` are two bounds of the weight; icepop sets weights outside them to 0.
fn slime_tis(case: &PeerCase) -> Value {
    let (low, high) = (case.option_number("tis_clip_low"), case.option_number("tis_clip"));
    let settings = CorrectionSettings { rollout_is: Some("token".to_owned()), ..CorrectionSettings::default() };
    let settings = match case.option_word("function") {
        "icepop_function" => CorrectionSettings { rollout_is_threshold: Some(format!("{low}_{high}")), ..settings },
        _ => {
            CorrectionSettings { rollout_is_threshold: Some(high.to_string()), rollout_is_threshold_lower: Some(low), ..settings }
        }
    };
    json!({ "weights": case.ragged(&corrected(case, &settings, &case.mask).weights.unwrap()) })
}

/// OpenRLHF's corrections, in the settings to which `trainer from-openrlhf` converts them.
fn gate(case: &PeerCase) -> Value {
    let threshold: Vec<f64> = case.option("threshold").as_array().unwrap().iter().map(number).collect();
    let range = Some(format!("{:?}_{:?}", threshold[0], threshold[1]));
    let (level, gating) = (case.option_word("level"), case.option_word("gating"));
    let weighted = CorrectionSettings {
        rollout_is: Some("token".to_owned()),
        rollout_is_threshold: Some("inf".to_owned()),
        count_rejected: true,
        ..CorrectionSettings::default()
    };
    let (settings, filtered) = match (level, case.option_word("mode"), gating) {
        (_, "clip", _) => {
            let (high, low) = (Some(threshold[1].to_string()), Some(threshold[0]));
            (CorrectionSettings { rollout_is_threshold: high, rollout_is_threshold_lower: low, ..weighted }, None)
        }
        ("token", _, "ratio") => {
            (CorrectionSettings { rollout_is_threshold: range, ..weighted }, Some("rollout_is_oob_ratio".to_owned()))
        }
        (_, _, "ratio") => {
            let (rollout_rs, rollout_rs_threshold) = (Some("geometric".to_owned()), range);
            let filtered = Some("rollout_rs_seq_mean_k1_seq_masked_fraction".to_owned());
            (CorrectionSettings { rollout_rs, rollout_rs_threshold, ..weighted }, filtered)
        }
        (level, _, gating) => {
            let name = format!("{}_{gating}", if level == "seq" { "seq_mean" } else { "token" });
            let share = if level == "seq" { "seq_masked_fraction" } else { "masked_fraction" };
            let filtered = Some(format!("rollout_rs_{name}_{share}"));
            let rollout_rs_threshold = Some(threshold[1].to_string());
            (CorrectionSettings { rollout_rs: Some(name), rollout_rs_threshold, ..weighted }, filtered)
        }
    };
    let corrected = corrected(case, &settings, &case.mask);
    assert_eq!(corrected.mask, case.mask, "rejected tokens count");
    let weights = corrected.weights.unwrap();
    let result = loss(case, "vanilla", &case.column("old_log_probs"), Some(&weights));
    let metric = |name: &str| result.metrics.iter().find(|m| m.name == name).map(|m| m.sum / m.count);
    let reported = |name: String| corrected.metrics.iter().find(|(n, _)| *n == format!("rollout_corr/{name}")).map(|(_, v)| *v);
    let mut ours = json!({
        "loss": result.loss,
        "grad": case.ragged(&result.d_log_prob),
        "clip_ratio": metric("actor/pg_clipfrac"),
        "ppo_kl": metric("actor/ppo_kl"),
        "vllm_kl": reported("kl".to_owned()),
        "is_filter_ratio": filtered.map(reported),
    });
    if case.json["out"].get("weights").is_some() {
        ours["weights"] = case.ragged(&weights);
    }
    ours
}

/// The ratio is to the log-probabilities of the engine, and no gate acts.
fn gspo_of_openrlhf(case: &PeerCase) -> Value {
    let result = loss(case, "gspo", &case.column("rollout_log_probs"), None);
    json!({ "loss": result.loss })
}

/// Returns the loss of a case; OpenRLHF's means are over all tokens, and over responses with a token.
fn loss(case: &PeerCase, name: &str, old: &[f32], weights: Option<&[f32]>) -> LossResult {
    let policy_loss = policy_loss::find(name).unwrap();
    let option = |name: &str| case.option(name).as_f64().or(case.option("clip_eps").as_f64()).unwrap();
    let options = loss_options(policy_loss)
        .with("clip_ratio_low", option("clip_eps_low"))
        .with("clip_ratio_high", option("clip_eps_high"))
        .with("clip_ratio_c", 1e9);
    let mode = aggregate::find(case.option("loss_agg_mode").as_str().unwrap_or("seq-mean-token-mean")).unwrap();
    let rows = trained_sequences(&case.offsets, &case.mask);
    let by_token = token_weights(mode, &case.offsets, &case.mask, rows, None, 1);
    let log_prob = case.column("log_probs");
    objective(policy_loss, options).evaluate(&LossColumns {
        offsets: &case.offsets,
        mask: &case.mask,
        log_prob: &log_prob,
        entropy: &vec![0.0; log_prob.len()],
        old_log_prob: Some(old),
        ref_log_prob: None,
        advantages: &case.column("advantages"),
        weights: &by_token,
        penalty_weights: &by_token,
        rollout_is_weights: weights,
        full_kl: None,
        factor: None,
        entropy_mask: None,
        behaviour_log_prob: None,
        entropy_bonus: None,
    })
}

/// SkyRL's steps in our settings; a threshold that a case does not name is off.
fn skyrl(case: &PeerCase) -> Value {
    let range = |name: &str| {
        let bound = |end: &str| case.option(&format!("{name}_{end}")).as_f64();
        let (low, high) = (bound("low"), bound("high"));
        (low.is_some() || high.is_some())
            .then(|| format!("{:?}_{}", low.unwrap_or(0.0), high.map_or("inf".to_owned(), |high| format!("{high:?}"))))
    };
    let metric = case.option("sequence_mask_metric").as_str();
    let criteria = [
        ("outlier", range("outlier_token_is_threshold")),
        ("token", range("token_mask_is_threshold")),
        ("geometric", range("geo_mask").filter(|_| metric == Some("geometric"))),
        ("sequence", range("product_mask").filter(|_| metric == Some("product"))),
    ];
    let (names, bounds): (Vec<&str>, Vec<String>) = criteria.into_iter().filter_map(|(name, range)| Some((name, range?))).unzip();
    let level = case.option("tis_ratio_type").as_str();
    let high = level.map(|level| case.option_number(&format!("{level}_tis_ratio_clip_high")).to_string());
    let settings = CorrectionSettings {
        rollout_is: level.map(str::to_owned),
        rollout_is_threshold: high,
        rollout_rs: (!names.is_empty()).then(|| names.join(",")),
        rollout_rs_threshold: (!names.is_empty()).then(|| bounds.join(",")),
        ..CorrectionSettings::default()
    };
    let corrected = corrected(case, &settings, &case.mask);
    let mask: Value = case.whole(&corrected.mask).as_array().unwrap().iter().map(whole_numbers).collect();
    let mut ours = json!({ "mask": mask, "weights": Value::Null });
    if let Some(weights) = &corrected.weights {
        // SkyRL's weight of a token that it has masked does not matter.
        let weights: Vec<f32> = weights.to_vec();
        let mut rows = case.ragged(&weights);
        let kept = case.whole(&corrected.mask);
        for (row, kept) in rows.as_array_mut().unwrap().iter_mut().zip(kept.as_array().unwrap()) {
            for (weight, kept) in row.as_array_mut().unwrap().iter_mut().zip(kept.as_array().unwrap()) {
                if kept == &json!(0.0) {
                    *weight = Value::Null;
                }
            }
        }
        ours["weights"] = rows;
    }
    ours
}

fn whole_numbers(row: &Value) -> Value {
    row.as_array().unwrap().iter().map(|m| m.as_f64().unwrap() as i64).collect()
}

fn skyrl_deviates(case: &PeerCase) -> Option<&'static str> {
    let steps = case.option_word("variant").contains('+');
    steps.then_some("SkyRL judges a response by the tokens that the step before left")
}
