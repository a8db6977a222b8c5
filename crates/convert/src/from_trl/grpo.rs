//! Converts the options of today's RLOO and GRPO trainers.

use super::{batch, rewards};
use crate::peers::{Draft, float, int, text};
use burnish_hydra::Value;

/// Sets batch, rewards and loss, and returns the number of updates in a step.
pub(super) fn derive(draft: &mut Draft) -> f64 {
    let updates = batch::derive(draft);
    responses(draft);
    rewards::derive(draft);
    draft.set_because("@actor.clip_ratio_c", float(1e9), "TRL has no dual clip");
    if draft.trainer.name == "rloo" {
        rloo(draft);
    } else {
        losses(draft);
        kl_loss(draft, updates);
        correction(draft);
    }
    if let Some(steps) = draft.values.number("ref_model_sync_steps").filter(|_| draft.values.flag("sync_ref_model")) {
        draft.set(
            "actor_rollout_ref.ref.ref_model_sync_steps",
            int((steps / updates).ceil().max(1.0) as i64),
            "ref_model_sync_steps",
        );
    }
    shown(draft);
    updates
}

/// Sets the number of responses that a step shows.
pub(super) fn shown(draft: &mut Draft) {
    let all = || match draft.settings.get("data.train_batch_size").map(|setting| &setting.value) {
        Some(Value::Int(prompts)) => (*prompts as usize).saturating_mul(draft.values.count("num_generations").unwrap_or(1)),
        _ => 0,
    };
    let shown = draft.values.flag("log_completions").then(|| draft.values.count("num_completions_to_print").unwrap_or_else(all));
    let shown = shown.unwrap_or(0);
    draft.set("trainer.log_completions", int(shown), "log_completions num_completions_to_print");
}

/// The sampling parameters of vLLM that are settings of `rollout`; transformers shares some names.
const SAMPLING: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "bad_words",
    "allowed_token_ids",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "ignore_eos",
];

/// Sets the lengths of prompts and responses, and the sampling options of `generation_kwargs`.
pub(super) fn responses(draft: &mut Draft) {
    match draft.values.count("max_prompt_length") {
        Some(length) => {
            draft.set("data.max_prompt_length", int(length), "max_prompt_length");
            draft.set("data.truncation", text("left"), "max_prompt_length");
        }
        None => no_limit(draft),
    }
    draft.copy("data.max_response_length", "max_completion_length");
    let Value::Map(map) = draft.values.get("generation_kwargs") else { return };
    for (name, node) in map {
        let key = match name.as_str() {
            name if SAMPLING.contains(&name) => format!("actor_rollout_ref.rollout.{name}"),
            "min_new_tokens" => "actor_rollout_ref.rollout.min_tokens".into(),
            "max_new_tokens" | "max_tokens" => "data.max_response_length".into(),
            _ => {
                draft.refuse("generation_kwargs", format!("`{name}` in it is not supported"));
                continue;
            }
        };
        draft.set(&key, node.value, "generation_kwargs");
    }
}

/// Sets the length of prompts for a trainer without a limit.
pub(crate) fn no_limit(draft: &mut Draft) {
    let why = "TRL has no limit; longer prompts are an error";
    draft.set_because("data.max_prompt_length", int(512), why);
}

fn rloo(draft: &mut Draft) {
    draft.set_because("algorithm.adv_estimator", text("rloo"), "RLOOTrainer");
    draft.set_because("@actor.policy_loss.loss_mode", text("rloo"), "RLOOTrainer: one ratio per response");
    draft.copy("@actor.clip_ratio", "epsilon");
    clip_high(draft, 0.0);
    let beta = draft.values.number("beta").unwrap_or(0.0);
    if beta != 0.0 {
        kl_in_reward(draft, "beta");
    }
    if draft.values.flag("normalize_advantages") {
        draft.set("algorithm.normalize_advantages", text("sequences"), "normalize_advantages");
    }
    if !draft.values.items("reward_clip_range").is_empty() {
        draft.copy("algorithm.reward_clip_range", "reward_clip_range");
    }
}

/// Sets a KL term in the reward, with the estimator k1.
pub(super) fn kl_in_reward(draft: &mut Draft, names: &str) {
    draft.set("algorithm.use_kl_in_reward", Value::Bool(true), names);
    draft.set("algorithm.kl_penalty", text("k1"), names);
    draft.copy("algorithm.kl_ctrl.kl_coef", names);
}

/// Sets the upper clip range, minus `less`.
fn clip_high(draft: &mut Draft, less: f64) {
    if let Some(high) = draft.values.number("epsilon_high") {
        draft.set("@actor.clip_ratio_low", draft.values.get("epsilon"), "epsilon");
        draft.set("@actor.clip_ratio_high", float(high - less), "epsilon_high");
    }
}

/// Sets estimator, loss and aggregation of GRPO.
pub(super) fn losses(draft: &mut Draft) {
    let separately = draft.values.text("multi_objective_aggregation").is_some_and(|how| how == "normalize_then_sum");
    let estimator = if separately { "trl_gdpo" } else { "trl_grpo" };
    draft.set("algorithm.adv_estimator", text(estimator), "multi_objective_aggregation");
    if !draft.values.is_set("multi_objective_aggregation") {
        draft.set_because("algorithm.adv_estimator", text(estimator), "GRPOTrainer");
    }
    let scale = match draft.values.get("scale_rewards") {
        Value::Bool(true) => "group".into(),
        Value::Bool(false) => "none".into(),
        Value::Text(name) => match name.to_lowercase().as_str() {
            "true" => "group".into(),
            "false" => "none".into(),
            _ => name,
        },
        _ => "group".into(),
    };
    if !separately {
        draft.set("algorithm.scale_rewards", text(scale), "scale_rewards");
    }
    let loss = draft.values.text("loss_type").unwrap_or_else(|| "dapo".into());
    let sequence = draft.values.text("importance_sampling_level").is_some_and(|level| level == "sequence");
    let plain = if sequence { "gspo" } else { "vanilla" };
    let (mode, aggregation) = match loss.as_str() {
        "grpo" => (plain, "seq-mean-token-mean"),
        "bnpo" | "dapo" => (plain, "token-mean"),
        "dr_grpo" => (plain, "seq-mean-token-sum-norm"),
        "luspo" => ("gspo", "seq-mean-token-sum"),
        "cispo" => ("cispo", "token-mean"),
        "sapo" => ("sapo", "seq-mean-token-mean"),
        "vespo" => ("vespo", "token-mean"),
        other => {
            draft.refuse(
                "loss_type",
                format!("`{other}` is not supported: supported are grpo, bnpo, dapo, dr_grpo, luspo, cispo, sapo, vespo"),
            );
            (plain, "token-mean")
        }
    };
    draft.set("@actor.policy_loss.loss_mode", text(mode), "loss_type importance_sampling_level");
    draft.set("@actor.loss_agg_mode", text(aggregation), "loss_type");
    if draft.values.is_set("loss_type") {
        draft.set_because("@actor.loss_agg_mode", text(aggregation), format!("--loss_type {loss}"));
    }
    match mode {
        "cispo" => {
            let high = draft.values.number("epsilon_high").or_else(|| draft.values.number("epsilon")).unwrap_or(0.2);
            draft.set_because("@actor.clip_ratio_low", float(1.0), "TRL's cispo has no lower bound");
            draft.set("@actor.clip_ratio_high", float(high - 1.0), "epsilon_high");
            if high <= 1.0 {
                draft.refuse(
                    "epsilon_high",
                    "must be above 1, such as 5: TRL's cispo clips the ratio itself, not its distance from 1",
                );
            }
        }
        "sapo" => {
            draft.copy("@actor.tau_pos", "sapo_temperature_pos");
            draft.copy("@actor.tau_neg", "sapo_temperature_neg");
        }
        "vespo" => {
            for name in ["vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"] {
                draft.copy(&format!("@actor.policy_loss.{name}"), name);
            }
        }
        _ => {
            draft.copy("@actor.clip_ratio", "epsilon");
            clip_high(draft, 0.0);
        }
    }
}

fn kl_loss(draft: &mut Draft, updates: f64) {
    if draft.values.number("beta").unwrap_or(0.0) == 0.0 {
        return;
    }
    draft.set("@actor.use_kl_loss", Value::Bool(true), "beta");
    draft.copy("@actor.kl_loss_coef", "beta");
    let corrected = draft.values.flag("use_bias_correction_kl");
    // With one update per step every ratio is 1, and the gradient of TRL's term is that of k3+.
    let by_ratio = corrected && updates > 1.0;
    draft.set("@actor.kl_loss_type", text(if corrected && !by_ratio { "k3+" } else { "k3" }), "use_bias_correction_kl");
    if by_ratio {
        draft.set("@actor.use_bias_correction_kl", Value::Bool(true), "use_bias_correction_kl");
    }
}

/// Sets the correction for the mismatch of generation and training, which TRL applies with vLLM.
fn correction(draft: &mut Draft) {
    if !draft.values.flag("use_vllm") || !draft.values.flag("vllm_importance_sampling_correction") {
        return;
    }
    let mode = draft.values.text("vllm_importance_sampling_mode").unwrap_or_else(|| "sequence_mask".into());
    let (level, bound) = mode.split_once('_').unwrap_or((&mode, "mask"));
    let high =
        draft.values.number("vllm_importance_sampling_cap").or_else(|| draft.values.number("vllm_importance_sampling_clip_max"));
    let low = draft.values.number("vllm_importance_sampling_clip_min");
    let names = "vllm_importance_sampling_mode vllm_importance_sampling_clip_max vllm_importance_sampling_cap vllm_importance_sampling_clip_min";
    let key = |name: &str| format!("algorithm.rollout_correction.{name}");
    draft.set(&key("rollout_is"), text(level), names);
    let high = high.unwrap_or(f64::INFINITY);
    if bound == "truncate" {
        draft.set(&key("rollout_is_threshold"), float(high), names);
        if let Some(low) = low {
            draft.set(&key("rollout_is_threshold_lower"), float(low), names);
        }
    } else {
        let high = if high.is_infinite() { "inf".to_string() } else { format!("{high:?}") };
        draft.set(&key("rollout_is_threshold"), text(format!("{:?}_{high}", low.unwrap_or(0.0))), names);
    }
}
