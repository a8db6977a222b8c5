//! Converts the options of TRL's original RLOO trainer (0.9 to 0.21) and PPO trainer, which share batch and generation.

use super::{batch, grpo};
use crate::peers::{Draft, float, int, list, text};
use burnish_hydra::Value;

const UPDATE: &str = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps rloo_k";

pub(super) fn derive(draft: &mut Draft) {
    let episodes = sizes(draft);
    if let Some(total) = draft.values.number("total_episodes") {
        let steps = (total / episodes).ceil().max(1.0);
        draft.set("trainer.total_training_steps", int(steps as i64), "total_episodes");
    }
    grpo::no_limit(draft);
    draft.copy("data.max_response_length", "response_length");
    ends(draft);
    draft.set_because("@actor.clip_ratio_c", float(1e9), "TRL has no dual clip");
    draft.copy("@actor.clip_ratio", "cliprange");
    grpo::kl_in_reward(draft, "kl_coef");
    if let Some(estimator) = draft.values.text("kl_estimator") {
        draft.set("algorithm.kl_penalty", text(estimator), "kl_estimator");
    }
    reward_model(draft);
    draft.set_because("trainer.metric_names", text("trl"), "metrics such as objective/kl, objective/scores");
    draft.set_because("trainer.log_completions", int(5), "TRL prints samples num_sample_generations times");
    if draft.trainer.name == "ppo" { ppo(draft) } else { rloo(draft) }
}

/// Sets the batch sizes, and returns the number of responses in a step.
fn sizes(draft: &mut Draft) -> f64 {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let n = if draft.trainer.name == "rloo" { count("rloo_k") } else { 1 };
    let each = draft.values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let update = each.saturating_mul(count("gradient_accumulation_steps")).saturating_mul(draft.processes);
    let (parts, epochs) = (count("num_mini_batches"), count("num_ppo_epochs"));
    let forward = count("local_rollout_forward_batch_size");
    if !update.is_multiple_of(n) {
        let reason = format!("an update has {update} responses; this must be a multiple of rloo_k");
        draft.refuse("rloo_k", reason);
    }
    let mini = (update / n).max(1);
    draft.set("data.train_batch_size", int(mini.saturating_mul(parts)), &format!("{UPDATE} num_mini_batches"));
    draft.set("@actor.ppo_mini_batch_size", int(mini), UPDATE);
    batch::micro_batches(draft, each, "per_device_train_batch_size per_gpu_train_batch_size");
    for section in ["rollout", "ref"] {
        let key = format!("actor_rollout_ref.{section}.log_prob_micro_batch_size_per_gpu");
        draft.set(&key, int(forward), "local_rollout_forward_batch_size");
    }
    draft.set("@actor.ppo_epochs", int(epochs), "num_ppo_epochs");
    draft.set("actor_rollout_ref.rollout.n", int(n), if draft.trainer.name == "rloo" { "rloo_k" } else { "" });
    mini as f64 * n as f64 * parts as f64
}

/// Sets the ends of responses. TRL generates all tokens, and cuts them at the stop token if there is one.
fn ends(draft: &mut Draft) {
    let id = draft.values.number("stop_token_id");
    if let Some(id) = id {
        draft.set("actor_rollout_ref.rollout.stop_token_ids", list([int(id as i64)]), "stop_token_id");
    }
    if id.is_some() || draft.values.text("stop_token").is_some() {
        return;
    }
    if draft.values.number("missing_eos_penalty").is_some() {
        draft.note("responses end at the end token; without stop_token TRL also trains on the tokens after it");
    } else {
        let why = "without stop_token TRL generates beyond the end token";
        draft.set_because("actor_rollout_ref.rollout.ignore_eos", Value::Bool(true), why);
    }
}

fn reward_model(draft: &mut Draft) {
    draft.set("reward_model.enable", Value::Bool(true), "reward_model_path");
    draft.copy("reward_model.model.path", "reward_model_path");
    draft.set_because("reward_model.model.input_tokenizer", Value::Null, "TRL's reward model reads the policy's tokens");
    draft.set(
        "reward_model.micro_batch_size_per_gpu",
        draft.values.get("local_rollout_forward_batch_size"),
        "local_rollout_forward_batch_size",
    );
}

fn rloo(draft: &mut Draft) {
    draft.set_because("algorithm.adv_estimator", text("rloo"), "RLOOTrainer");
    draft.set_because("@actor.policy_loss.loss_mode", text("rloo"), "RLOOTrainer: one ratio per response");
    if draft.values.flag("normalize_advantage") {
        draft.set("algorithm.normalize_advantages", text("sequences"), "normalize_advantage");
    }
    if let Some(range) = draft.values.number("reward_clip_range") {
        if draft.values.flag("normalize_reward") {
            draft.set("algorithm.reward_clip_range", list([float(-range), float(range)]), "reward_clip_range");
        } else if draft.values.is_set("reward_clip_range") {
            draft.note("--reward_clip_range is ignored: TRL clips only with normalize_reward");
        }
    }
}

fn ppo(draft: &mut Draft) {
    draft.set_because("algorithm.adv_estimator", text("gae"), "PPOTrainer");
    draft.set_because("@actor.loss_agg_mode", text("token-mean"), "PPOTrainer");
    draft.copy("critic.model.path", "reward_model_path");
}
