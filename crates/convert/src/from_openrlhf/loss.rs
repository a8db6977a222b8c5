//! Converts the options of advantages, losses and the KL term.

use crate::peers::{Draft, float, list, text};
use burnish_hydra::Value;

const ESTIMATOR: &str = "algo.advantage.estimator advantage_estimator";
/// The first release whose loss is the mean over all tokens; before, it was the mean over the means of responses.
const AVERAGES_TOKENS: &str = "0.7.0";
/// The first release that does not whiten the advantages of rloo.
const WHITENS_LESS: &str = "0.8.5";
const CLIP_RANGE: &str = "reward.clip_range reward_clip_range";
const GATING: &str = "algo.advantage.is_correction_gating";
/// Reason for `count_rejected`.
const COUNTS: &str = "OpenRLHF's means count rejected tokens";
const KL: &str = "algo.kl.init_coef init_kl_coef";

/// OpenRLHF's names of estimators, with our names.
const ESTIMATORS: &[(&str, &str)] = &[
    ("gae", "gae"),
    ("reinforce", "reinforce"),
    ("reinforce_baseline", "reinforce_baseline"),
    ("group_norm", "group_norm"),
    ("dr_grpo", "dr_grpo"),
    ("rloo", "openrlhf_rloo"),
    ("flash_reinforce", "flash_reinforce"),
];

pub(super) fn derive(draft: &mut Draft) {
    let name = draft.values.text(ESTIMATOR).unwrap_or_else(|| "gae".into());
    match ESTIMATORS.iter().find(|(there, _)| *there == name) {
        Some((_, here)) => draft.set("algorithm.adv_estimator", text(*here), ESTIMATOR),
        None => {
            let known: Vec<&str> = ESTIMATORS.iter().map(|(there, _)| *there).collect();
            draft.refuse(ESTIMATOR, format!("supported are {}", known.join(", ")));
        }
    }
    if draft.values.is_set(CLIP_RANGE) {
        let key = if name == "gae" { "algorithm.reward_clip_range" } else { "algorithm.baselined_clip_range" };
        match range(draft, CLIP_RANGE) {
            Some(range) => draft.set(key, range, CLIP_RANGE),
            None => draft.refuse(CLIP_RANGE, "must be two numbers"),
        }
    }
    if draft.values.is_before(WHITENS_LESS) && name == "rloo" {
        draft.set_because(
            "algorithm.normalize_advantages",
            text("tokens"),
            "this release of OpenRLHF whitens the advantages of rloo",
        );
    }
    if let Some(steps) = draft.values.number("critic.freezing_steps freezing_actor_steps").filter(|steps| *steps > 0.0) {
        draft.set("trainer.critic_warmup", Value::Int(steps as i64 + 1), "critic.freezing_steps freezing_actor_steps");
    }
    policy(draft);
    kl(draft);
    correction(draft);
}

fn policy(draft: &mut Draft) {
    let kind = draft.values.text("actor.policy_loss_type policy_loss_type");
    let is_gspo = kind.as_deref() == Some("gspo");
    draft.set(
        "@actor.policy_loss.loss_mode",
        text(if is_gspo { "gspo" } else { "vanilla" }),
        "actor.policy_loss_type policy_loss_type",
    );
    let by_response = is_gspo || draft.values.is_before(AVERAGES_TOKENS);
    match draft.values.text("actor.loss_agg_mode") {
        Some(mode) if !is_gspo => draft.set("@actor.loss_agg_mode", text(mode), "actor.loss_agg_mode"),
        _ => {
            let mode = if by_response { "seq-mean-token-mean" } else { "token-mean" };
            draft.set_because("@actor.loss_agg_mode", text(mode), "OpenRLHF's loss aggregation");
        }
    }
    if let [low, high] = draft.values.items("actor.eps_clip_low_high eps_clip_low_high").as_slice() {
        draft.set("@actor.clip_ratio_low", low.clone(), "actor.eps_clip_low_high eps_clip_low_high");
        draft.set("@actor.clip_ratio_high", high.clone(), "actor.eps_clip_low_high eps_clip_low_high");
    }
    match draft.values.number("actor.dual_clip dual_clip") {
        Some(clip) => draft.set("@actor.clip_ratio_c", float(clip), "actor.dual_clip dual_clip"),
        None => draft.set_because("@actor.clip_ratio_c", float(1e9), "OpenRLHF has no dual clip by default"),
    }
}

fn kl(draft: &mut Draft) {
    let coefficient = draft.values.number(KL).unwrap_or(0.0);
    let estimator = match draft.values.text("algo.kl.estimator kl_estimator") {
        Some(name) => name,
        None if draft.values.flag("use_kl_estimator_k3") => "k3".into(),
        None => "k1".into(),
    };
    let names = "algo.kl.estimator kl_estimator use_kl_estimator_k3";
    if coefficient <= 0.0 {
        return;
    }
    if draft.values.flag("algo.kl.use_loss use_kl_loss") {
        draft.set("@actor.use_kl_loss", Value::Bool(true), "algo.kl.use_loss use_kl_loss");
        draft.copy("@actor.kl_loss_coef", KL);
        let suffix = if draft.values.flag("algo.kl.unbiased_gradient") { "+" } else { "" };
        if !suffix.is_empty() {
            draft.set("@actor.use_bias_correction_kl", Value::Bool(true), "algo.kl.unbiased_gradient");
        }
        draft.set("@actor.kl_loss_type", text(format!("{estimator}{suffix}")), &format!("{names} algo.kl.unbiased_gradient"));
    } else {
        draft.set("algorithm.use_kl_in_reward", Value::Bool(true), KL);
        draft.set("algorithm.kl_penalty", text(estimator), names);
        draft.copy("algorithm.kl_ctrl.kl_coef", KL);
        if draft.values.number("algo.kl.target kl_target").is_some() {
            draft.set("algorithm.kl_ctrl.type", text("adaptive"), "algo.kl.target kl_target");
            draft.copy("algorithm.kl_ctrl.target_kl", "algo.kl.target kl_target");
        }
    }
}

/// Sets the correction for the mismatch of generation and training.
fn correction(draft: &mut Draft) {
    let by_name = draft.values.flag("algo.advantage.is_correction_enable enable_vllm_is_correction");
    let level = draft.values.text("algo.advantage.is_correction_level").unwrap_or_else(|| "off".into());
    let mode = draft.values.text("algo.advantage.is_correction_mode").unwrap_or_default();
    let kind = match (by_name, level.as_str()) {
        (true, _) if draft.values.flag("use_icepop") => "icepop".into(),
        (true, _) => {
            draft.values.text("algo.advantage.is_correction_type vllm_is_correction_type").unwrap_or_else(|| "tis".into())
        }
        (_, "off") => return,
        (_, "seq") => "seq-mask-tis".into(),
        _ if mode == "clip" => "tis".into(),
        _ => "icepop".into(),
    };
    if level != "off" && draft.values.text("actor.policy_loss_type policy_loss_type").as_deref() == Some("gspo") {
        let why = "with gspo OpenRLHF applies no correction, and takes the ratio to the engine's log-probabilities";
        return draft.refuse("algo.advantage.is_correction_level", why);
    }
    let gating = draft.values.text(GATING).unwrap_or_else(|| "ratio".into());
    let names = "algo.advantage.is_correction_threshold vllm_is_truncated_threshold";
    let bounds: Vec<f64> = draft.values.items(names).iter().filter_map(number).collect();
    let (low, high) = match bounds.as_slice() {
        [low, high] => (*low, *high),
        [high] => (0.0, *high),
        _ => (0.5, 5.0),
    };
    if gating != "ratio" {
        let level = if level == "seq" { "seq_mean" } else { "token" };
        return gate(draft, &format!("{level}_{gating}"), &mode, (low, high), names);
    }
    let range = text(format!("{low:?}_{high:?}"));
    let names = format!(
        "{names} use_icepop algo.advantage.is_correction_type vllm_is_correction_type algo.advantage.is_correction_level"
    );
    draft.set(&key("rollout_is"), text("token"), &names);
    match kind.as_str() {
        "icepop" => draft.set(&key("rollout_is_threshold"), range, &names),
        "seq-mask-tis" => {
            draft.set(&key("rollout_is_threshold"), float(f64::INFINITY), &names);
            draft.set(&key("rollout_rs"), text("geometric"), &names);
            draft.set(&key("rollout_rs_threshold"), range, &names);
            draft.set_because(&key("count_rejected"), Value::Bool(true), COUNTS);
        }
        _ => {
            draft.set(&key("rollout_is_threshold"), float(high), &names);
            draft.set(&key("rollout_is_threshold_lower"), float(low), &names);
        }
    }
}

/// Sets a criterion that compares probabilities, with weights that nothing bounds.
fn gate(draft: &mut Draft, criterion: &str, mode: &str, (low, high): (f64, f64), thresholds: &str) {
    if !["binary_kl", "tv"].iter().any(|gating| criterion.ends_with(gating)) {
        return draft.refuse(GATING, "supported are ratio, binary_kl, tv");
    }
    if mode == "clip" {
        return draft.refuse(GATING, "is_correction_mode clip needs is_correction_gating ratio");
    }
    if low > 0.0 {
        return draft.refuse(thresholds, "a divergence has no lower bound: write one number");
    }
    let names = format!("{GATING} algo.advantage.is_correction_level algo.advantage.is_correction_mode");
    draft.set(&key("rollout_is"), text("token"), &names);
    draft.set(&key("rollout_is_threshold"), float(f64::INFINITY), &names);
    draft.set(&key("rollout_rs"), text(criterion), &names);
    draft.set(&key("rollout_rs_threshold"), float(high), thresholds);
    draft.set_because(&key("count_rejected"), Value::Bool(true), COUNTS);
}

fn key(name: &str) -> String {
    format!("algorithm.rollout_correction.{name}")
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// Returns a list of two numbers, if an option has one.
pub(super) fn range(draft: &Draft, names: &str) -> Option<Value> {
    let items = draft.values.items(names);
    (items.len() == 2).then(|| list(items))
}
