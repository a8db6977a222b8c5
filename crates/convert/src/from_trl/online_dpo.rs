//! Converts the options of the online DPO trainer, whose loss compares two sampled responses.

use super::{batch, grpo, rewards};
use crate::peers::{Draft, int, text};
use burnish_hydra::Value;

/// Converts TRL's online DPO command, and returns the number of updates in a step.
pub(super) fn derive(draft: &mut Draft) -> f64 {
    batch::of_prompts(draft);
    draft.set_because("actor_rollout_ref.rollout.n", int(2), "OnlineDPOTrainer samples two responses to each prompt");
    grpo::no_limit(draft);
    draft.copy("data.max_response_length", "max_new_tokens");
    if draft.values.text("reward_model_path").is_some() {
        draft.set("reward_model.enable", Value::Bool(true), "reward_model_path");
        draft.copy("reward_model.model.path", "reward_model_path");
    } else {
        rewards::derive(draft);
    }
    draft.set_because("algorithm.adv_estimator", text("rloo"), "ranks the responses to a prompt by their scores");
    draft.set_because("@actor.policy_loss.loss_mode", text("dpo"), "OnlineDPOTrainer");
    let loss = match draft.values.text("loss_type").as_deref() {
        Some("ipo") => "ipo_sum",
        Some("sigmoid") | None => "sigmoid",
        Some(_) => {
            draft.refuse("loss_type", "supported are sigmoid and ipo");
            "sigmoid"
        }
    };
    draft.set("@actor.policy_loss.dpo_loss_type", text(loss), "loss_type");
    match draft.values.items("beta").as_slice() {
        [one] => draft.set("@actor.policy_loss.dpo_beta", one.clone(), "beta"),
        _ => draft.refuse("beta", "only one value for all epochs is supported"),
    }
    if draft.values.number("temperature").is_some_and(|temperature| temperature != 1.0) {
        draft.note("temperature: log-probabilities use the sampling temperature; TRL's use temperature 1");
    }
    draft.set_because("trainer.metric_names", text("trl"), "metrics such as objective/kl, rewards/margins");
    1.0
}
