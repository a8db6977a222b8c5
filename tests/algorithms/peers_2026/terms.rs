//! Terms of the loss: KL with a corrected gradient, adaptive entropy, and the mask of responses that are off-policy.

use burnish::algorithm::aggregate::{self, token_weights};
use burnish::algorithm::entropy_bonus::{AdaptiveEntropy, EntropyBonus, EntropyTarget};
use burnish::algorithm::kl::{self, KlPenalty, KlRatio};
use burnish::algorithm::loss::{LossColumns, LossResult, PolicyObjective};
use burnish::algorithm::off_policy_mask::{OffPolicyColumns, off_policy_keep};
use burnish::algorithm::policy_loss::{self, MiniBatch};
use serde_json::{Value, json};

use super::case::PeerCase;
use super::entry::{Entry, Precision, never};
use crate::cases::loss_options;
use crate::losses::objective;

pub(super) const ENTRIES: &[Entry] = &[
    Entry { algorithm: "off_policy_mask", precision: Precision::Column, run: off_policy_mask, left_out: &[], deviates: never },
    Entry {
        algorithm: "opsm",
        precision: Precision::Column,
        run: opsm,
        left_out: &[("opsm_clipfrac", "counts tokens of tools above and not below the line")],
        deviates: never,
    },
    Entry {
        algorithm: "off_policy_mask_loss",
        precision: Precision::Column,
        run: off_policy_mask_loss,
        left_out: &[],
        deviates: never,
    },
    Entry {
        algorithm: "kl_bias_correction",
        precision: Precision::Column,
        run: kl_bias_correction,
        left_out: &[("metrics", "TRL's names and means")],
        deviates: never,
    },
    Entry { algorithm: "kl_times_ratio", precision: Precision::Column, run: kl_times_ratio, left_out: &[], deviates: never },
    Entry { algorithm: "kl_unbiased_gradient", precision: Precision::Column, run: kl_unbiased, left_out: &[], deviates: never },
    Entry { algorithm: "adaptive_entropy", precision: Precision::Column, run: adaptive_entropy, left_out: &[], deviates: never },
];

fn keep(case: &PeerCase, advantages: &[f32], threshold: f64) -> Vec<f32> {
    let columns = OffPolicyColumns {
        offsets: &case.offsets,
        mask: &case.mask,
        log_prob: &case.column("log_probs"),
        behaviour_log_prob: &case.column("rollout_log_probs"),
        advantages,
    };
    off_policy_keep(&columns, threshold)
}

fn off_policy_mask(case: &PeerCase) -> Value {
    let advantages = case.spread(&case.numbers("advantage_of_response"));
    let keep = keep(case, &advantages, case.option_number("off_policy_mask_threshold"));
    let of_response: Vec<f64> = case.offsets[..case.responses()].iter().map(|&start| f64::from(keep[start])).collect();
    json!({ "keep_response": of_response })
}

fn opsm(case: &PeerCase) -> Value {
    json!({ "keep": case.whole(&keep(case, &case.column("advantages"), case.option_number("opsm_delta"))) })
}

/// Returns an objective with the clip range of TRL's cases.
fn trl(case: &PeerCase, name: &str) -> PolicyObjective {
    let policy_loss = policy_loss::find(name).unwrap();
    let options = loss_options(policy_loss)
        .with("clip_ratio_low", case.option_number("epsilon"))
        .with("clip_ratio_high", case.option_number("epsilon_high"))
        .with("clip_ratio_c", 1e9);
    objective(policy_loss, options)
}

/// The columns that only some cases have.
#[derive(Default)]
struct Extra<'a> {
    reference: Option<&'a [f32]>,
    behaviour: Option<&'a [f32]>,
    entropy: Option<&'a [f32]>,
    entropy_mask: Option<&'a [f32]>,
    bonus: Option<EntropyBonus>,
}

fn evaluate(case: &PeerCase, objective: &PolicyObjective, advantages: &[f32], weights: &[f32], extra: &Extra) -> LossResult {
    let log_prob = case.column("log_probs");
    let old = case.json["in"].get("old_log_probs").map(|_| case.column("old_log_probs"));
    objective.evaluate(&LossColumns {
        offsets: &case.offsets,
        mask: &case.mask,
        log_prob: &log_prob,
        entropy: extra.entropy.unwrap_or(&vec![0.0; log_prob.len()]),
        old_log_prob: old.as_deref(),
        ref_log_prob: extra.reference,
        advantages,
        weights,
        penalty_weights: weights,
        rollout_is_weights: None,
        full_kl: None,
        factor: None,
        entropy_mask: extra.entropy_mask,
        behaviour_log_prob: extra.behaviour,
        entropy_bonus: extra.bonus,
    })
}

/// Returns the weights of a mean over responses of means over tokens.
fn grpo_weights(case: &PeerCase, responses: usize) -> Vec<f32> {
    token_weights(aggregate::find("seq-mean-token-mean").unwrap(), &case.offsets, &case.mask, responses, None, 1)
}

fn off_policy_mask_loss(case: &PeerCase) -> Value {
    let threshold = Some(case.option_number("off_policy_mask_threshold"));
    let objective = PolicyObjective { off_policy_mask: threshold, ..trl(case, "vanilla") };
    let advantages = case.spread(&case.numbers("advantage_of_response"));
    let behaviour = case.column("rollout_log_probs");
    let extra = Extra { behaviour: Some(&behaviour), ..Extra::default() };
    let result = evaluate(case, &objective, &advantages, &grpo_weights(case, case.responses()), &extra);
    json!({ "loss": result.loss, "grad": case.ragged(&result.d_log_prob) })
}

fn kl_bias_correction(case: &PeerCase) -> Value {
    let by_response = case.option_word("importance_sampling_level") == "sequence";
    let k3 = kl::find("k3").unwrap();
    let ratio = if by_response { KlRatio::Response } else { KlRatio::Token };
    let penalty = if case.option("use_bias_correction_kl") == &json!(true) { k3.corrected(ratio) } else { k3 };
    let plain = trl(case, if by_response { "gspo" } else { "vanilla" });
    let objective = PolicyObjective { kl_loss: Some((penalty, case.option_number("beta"))), ..plain };
    let advantages = case.spread(&case.numbers("advantage_of_response"));
    let reference = case.column("ref_log_probs");
    let extra = Extra { reference: Some(&reference), ..Extra::default() };
    let result = evaluate(case, &objective, &advantages, &grpo_weights(case, case.responses()), &extra);
    json!({ "loss": result.loss, "grad": case.ragged(&result.d_log_prob) })
}

fn kl_times_ratio(case: &PeerCase) -> Value {
    kl_term(case, kl::find(case.option_word("kl_loss_type")).unwrap().corrected(KlRatio::Token))
}

/// `unbiased_gradient` is the `+` form; its weight is the corrected one.
fn kl_unbiased(case: &PeerCase) -> Value {
    let is_on = |name: &str| case.option(name) == &json!(true);
    let suffix = if is_on("unbiased_gradient") { "+" } else { "" };
    let penalty = kl::find(&format!("{}{suffix}", case.option_word("estimator"))).unwrap();
    kl_term(case, if is_on("weighted") { penalty.corrected(KlRatio::Token) } else { penalty })
}

/// Returns the KL term of each token, and the gradient of their masked sum. With advantages of 0 the term is the whole loss.
fn kl_term(case: &PeerCase, penalty: KlPenalty) -> Value {
    let policy_loss = policy_loss::find("vanilla").unwrap();
    let objective = PolicyObjective { kl_loss: Some((penalty, 1.0)), ..objective(policy_loss, loss_options(policy_loss)) };
    let (reference, zeros) = (case.column("ref_log_probs"), vec![0.0; case.mask.len()]);
    let extra = Extra { reference: Some(&reference), ..Extra::default() };
    let of = |weights: &[f32]| evaluate(case, &objective, &zeros, weights, &extra);
    let alone = |t: usize| (0..zeros.len()).map(|other| f32::from(u8::from(other == t))).collect::<Vec<f32>>();
    let values: Vec<f32> = (0..zeros.len()).map(|t| of(&alone(t)).loss as f32).collect();
    json!({ "value": case.ragged(&values), "grad_of_masked_sum": case.ragged(&of(&case.mask).d_log_prob) })
}

/// TRL's bonus is a mean over micro-batches of means over tokens; our mean over the tokens of the mini-batch is divided so that it
/// equals this for the cut of the case.
fn adaptive_entropy(case: &PeerCase) -> Value {
    let number = |name: &str| case.option_number(name);
    let settings = EntropyTarget {
        target: number("entropy_target"),
        delta: number("entropy_coef_delta"),
        min: number("entropy_coef_min"),
        max: number("entropy_coef_max"),
    };
    let mut entropy = AdaptiveEntropy::new(number("entropy_coef"));
    let steps = case.json["in"]["steps"].as_array().unwrap();
    let steps: Vec<Value> = steps.iter().map(|step| adaptive_step(case, step, &mut entropy, &settings)).collect();
    json!({ "steps": steps })
}

fn adaptive_step(case: &PeerCase, step: &Value, entropy: &mut AdaptiveEntropy, settings: &EntropyTarget) -> Value {
    let quantile = case.option_number("top_entropy_quantile");
    let objective = PolicyObjective { top_entropy_quantile: quantile, ..trl(case, "vanilla") };
    let micro_batches: Vec<Value> =
        step.as_array().unwrap().iter().map(|micro| json!({ "id": case.id(), "in": micro })).collect();
    let micro_batches: Vec<PeerCase> = micro_batches.iter().map(PeerCase::new).collect();
    let tokens: f32 = micro_batches.iter().flat_map(|micro| &micro.mask).sum();
    let responses = micro_batches.iter().map(PeerCase::responses).sum();
    let (mut results, mut sum, mut count) = (Vec::new(), 0.0, 0.0);
    for micro in &micro_batches {
        let (log_prob, old, own) = (micro.column("log_probs"), micro.column("old_log_probs"), micro.column("entropy"));
        let advantages = micro.spread(&micro.numbers("advantage_of_response"));
        let weights = match case.option_word("loss_type") {
            "grpo" => grpo_weights(micro, responses),
            _ => micro.mask.iter().map(|m| m / tokens).collect(),
        };
        let of_micro = MiniBatch {
            offsets: &micro.offsets,
            mask: &micro.mask,
            log_prob: &log_prob,
            entropy: &own,
            old_log_prob: &old,
            advantages: &advantages,
            ref_log_prob: None,
            groups: &[],
            options: &objective.options,
        };
        let mask = objective.prepare(&of_micro, &mut || 0.5).entropy_mask;
        let read: f32 = mask.as_ref().unwrap_or(&micro.mask).iter().sum();
        let tokens = f64::from(read) * micro_batches.len() as f64;
        let bonus = Some(EntropyBonus { weight: entropy.weight(settings), tokens });
        let extra = Extra { entropy: Some(&own), entropy_mask: mask.as_deref(), bonus, ..Extra::default() };
        let result = evaluate(micro, &objective, &advantages, &weights, &extra);
        let measured = result.terms.iter().find(|(name, _)| *name == "actor/measured_entropy").unwrap().1;
        (sum, count) = (sum + measured * tokens, count + f64::from(read));
        results.push(json!({
            "loss": result.loss,
            "grad": micro.ragged(&result.d_log_prob),
            "grad_entropy": micro.ragged(&result.d_entropy),
        }));
    }
    entropy.update(sum / count, settings);
    json!({ "micro_batches": results, "after": { "entropy_coef": entropy.coef(), "measured_entropy": sum / count } })
}
