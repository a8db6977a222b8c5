//! Policy losses of SkyRL and prime-rl, by our names.

use burnish::algorithm::loss::{LossColumns, LossResult, PolicyObjective};
use burnish::algorithm::policy_loss::{self, LossOptions};
use serde_json::{Value, json};

use super::case::PeerCase;
use super::entry::{Entry, Precision, never};
use crate::cases::loss_options;

pub(super) const ENTRIES: &[Entry] = &[
    skyrl("skyrl_rollout_is", |case| skyrl_loss(case, "rollout_is", "rollout", clip_range(case, "", "eps_clip"))),
    skyrl("skyrl_cispo", |case| {
        let anchor = case.option("cispo")["cispo_anchor"].as_str().unwrap();
        skyrl_loss(case, "cispo", anchor, clip_range(case, "cispo", "cispo_eps_clip"))
    }),
    skyrl("skyrl_dppo", |case| {
        let name = case.option("dppo")["dppo_type"].as_str().unwrap().replace("binary", "dppo");
        let mut result = skyrl_loss(case, &name, "rollout", clip_range(case, "dppo", "delta"));
        // The value has ρ in place of sg(ρ)·log π.
        result["loss_sum"] = Value::Null;
        result
    }),
    skyrl("skyrl_importance_sampling", |case| skyrl_loss(case, "vanilla", "old", unbounded())),
    skyrl("skyrl_cross_entropy", |case| {
        let ones = vec![1.0; case.mask.len()];
        let result = evaluate(case, "gpg", |options| options, "old", &ones, 1.0);
        json!({"loss_sum": result.loss, "grad": case.ragged(&result.d_log_prob)})
    }),
    prime("prime_default", |case| {
        let options = [("clip_ratio_low", "dppo_mask_low"), ("clip_ratio_high", "dppo_mask_high")];
        of_prime(case, "dppo_rollout", &options)
    }),
    prime("prime_ipo", |case| of_prime(case, "ipo", &[("ipo_threshold", "ipo_threshold")])),
];

const fn skyrl(algorithm: &'static str, run: fn(&PeerCase) -> Value) -> Entry {
    let left_out: &[_] = &[("metrics", "counts and ranges of SkyRL's own")];
    Entry { algorithm, precision: Precision::Column, run, left_out, deviates: never }
}

const fn prime(algorithm: &'static str, run: fn(&PeerCase) -> Value) -> Entry {
    let left_out: &[_] = &[("metrics_per_sequence", "metrics of prime-rl's own")];
    Entry { algorithm, precision: Precision::Column, run, left_out, deviates: never }
}

type Changes<'a> = Box<dyn Fn(LossOptions) -> LossOptions + 'a>;

/// The settings of a clip range, from two options with this beginning, in a section or at the top.
fn clip_range<'a>(case: &'a PeerCase, section: &str, start: &str) -> Changes<'a> {
    let of = |end: &str| {
        let name = format!("{start}_{end}");
        let options = if section.is_empty() { &case.json["options"] } else { case.option(section) };
        options[name.as_str()].as_f64().unwrap()
    };
    let (low, high) = (of("low"), of("high"));
    let ceiling = 1e9;
    Box::new(move |options| options.with("clip_ratio_low", low).with("clip_ratio_high", high).with("clip_ratio_c", ceiling))
}

fn unbounded() -> Changes<'static> {
    Box::new(|options| options.with("clip_ratio_low", 1e9).with("clip_ratio_high", 1e9).with("clip_ratio_c", 1e9))
}

fn skyrl_loss(case: &PeerCase, name: &str, anchor: &str, options: Changes) -> Value {
    let result = evaluate(case, name, options, anchor, &case.column("advantages"), 1.0);
    json!({"loss_sum": result.loss, "grad": case.ragged(&result.d_log_prob)})
}

fn of_prime(case: &PeerCase, name: &str, settings: &[(&str, &str)]) -> Value {
    let result = prime_loss(case, name, settings);
    json!({"loss": result.loss, "grad": case.ragged(&result.d_log_prob)})
}

/// Returns a policy loss of prime-rl with these settings, named by ours and by the file.
pub(super) fn prime_loss(case: &PeerCase, name: &str, settings: &[(&str, &str)]) -> LossResult {
    let taus = [("adv_tau", "adv_tau"), ("kl_tau", "kl_tau")];
    let options = |options: LossOptions| {
        let all = settings.iter().chain(&taus);
        all.fold(options, |options, (own, theirs)| options.with(own, case.option_number(theirs)))
    };
    let weight = 1.0 / case.option_number("rl_scale");
    evaluate(case, name, options, "rollout", &case.column("advantages"), weight)
}

/// Returns the sum over trained tokens, each with this weight.
fn evaluate(
    case: &PeerCase,
    name: &str,
    options: impl Fn(LossOptions) -> LossOptions,
    anchor: &str,
    advantages: &[f32],
    weight: f64,
) -> LossResult {
    let policy_loss = policy_loss::find(name).unwrap();
    let options = options(loss_options(policy_loss));
    let objective = PolicyObjective {
        policy_loss,
        options,
        entropy_coeff: 0.0,
        kl_loss: None,
        top_entropy_quantile: 1.0,
        off_policy_mask: None,
    };
    let weights: Vec<f32> = case.mask.iter().map(|m| m * weight as f32).collect();
    let old = case.column(if anchor == "rollout" { "rollout_log_probs" } else { "old_log_probs" });
    objective.evaluate(&LossColumns {
        offsets: &case.offsets,
        mask: &case.mask,
        log_prob: &case.column("log_probs"),
        entropy: &vec![0.0; case.mask.len()],
        old_log_prob: Some(&old),
        ref_log_prob: None,
        advantages,
        weights: &weights,
        penalty_weights: &weights,
        rollout_is_weights: None,
        full_kl: None,
        factor: None,
        entropy_mask: None,
        behaviour_log_prob: None,
        entropy_bonus: None,
    })
}
