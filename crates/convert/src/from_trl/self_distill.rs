//! Converts the options of the self-distillation trainers SDFT and SDPO: the teacher is the policy, which is shown more.

use super::{batch, grpo, rewards, teacher};
use crate::peers::{Draft, float, int, text};
use burnish_hydra::Value;

const KIND: &str = "distillation.teacher_model_kind";
const CONTEXT: &str = "distillation.privileged_context_key";

/// Converts TRL's SDFT command, and returns the number of updates in a step.
pub(super) fn sdft(draft: &mut Draft) -> f64 {
    let updates = batch::derive(draft);
    grpo::responses(draft);
    teacher::alone(draft, "SDFTTrainer");
    teacher::without_rewards(draft, "SDFTTrainer");
    draft.set_because(CONTEXT, text("privileged_context"), "SDFTTrainer's column");
    draft.set_because("@actor.loss_agg_mode", text("seq-mean-token-mean"), "SDFTTrainer");
    policy_as_teacher(draft, "base", updates);
    loss(draft, "topk_logits");
    if draft.values.count("max_prompt_length").is_some() {
        draft.note("max_prompt_length: TRL also cuts the teacher's prompts to it; here they are whole");
    }
    updates
}

/// Converts TRL's SDPO command, and returns the number of updates in a step.
pub(super) fn sdpo(draft: &mut Draft) -> f64 {
    let updates = batch::derive(draft);
    grpo::responses(draft);
    rewards::derive(draft);
    draft.set_because("distillation.enabled", Value::Bool(true), "SDPOTrainer");
    draft.set_because("distillation.sdpo.enable", Value::Bool(true), "SDPOTrainer");
    if draft.values.flag("include_environment_feedback") {
        draft.set_because(CONTEXT, text("privileged_context"), "SDPOTrainer's column of feedback");
    }
    policy_as_teacher(draft, "ema", updates);
    loss(draft, "sampled_token");
    weight(draft);
    updates
}

/// Makes the teacher of the policy; `default`: the kind in editions without the option.
fn policy_as_teacher(draft: &mut Draft, default: &str, updates: f64) {
    let kind = draft.values.text("teacher_model_kind");
    match kind.as_deref() {
        None => draft.set_because(KIND, text(default), "this edition's teacher"),
        Some("base" | "live" | "ema") => draft.copy(KIND, "teacher_model_kind"),
        Some(_) => draft.refuse("teacher_model_kind", "supported are base, live, ema"),
    }
    let is_average = kind.as_deref().unwrap_or(default) == "ema";
    if is_average && draft.values.flag("use_peft") {
        draft.refuse(
            "use_peft",
            "the average of adapters is not the average of the weights: set --teacher_model_kind base or live",
        );
    }
    if let Some(steps) = draft.values.number("teacher_sync_steps") {
        // TRL counts updates.
        let steps = (steps / updates).ceil().max(1.0) as i64;
        draft.set("distillation.teacher_sync_steps", int(steps), "teacher_sync_steps");
    }
}

/// Sets the distance from the teacher; `default`: the mode in editions without the option.
fn loss(draft: &mut Draft, default: &str) {
    let mode = draft.values.text("distillation_mode").unwrap_or_else(|| default.into());
    let alpha = draft.values.number("distillation_alpha").unwrap_or(1.0);
    match mode.as_str() {
        "sampled_token" => {
            draft.set(&teacher::loss("loss_mode"), text("sampled_token"), "distillation_mode");
            if alpha != 1.0 {
                draft.refuse("distillation_alpha", "must be 1 with distillation_mode sampled_token");
            }
        }
        "topk_logits" => {
            teacher::divergence(draft, alpha, "distillation_mode distillation_alpha", "distillation_alpha");
            match draft.values.count("distillation_topk") {
                Some(_) => draft.copy(&teacher::loss("loss_top_k"), "distillation_topk"),
                None => draft.refuse("distillation_topk", "must be a number of tokens with distillation_mode topk_logits"),
            }
            draft.set_because(&teacher::loss("loss_support"), text("student"), "TRL takes the student's tokens");
            draft.copy(&teacher::loss("loss_add_tail"), "distillation_add_tail");
        }
        "full_logits" => {
            teacher::divergence(draft, alpha, "distillation_mode distillation_alpha", "distillation_alpha");
            let message = "size of the vocabulary (vocab_size in the model's config.json): distillation_mode is full_logits";
            draft.ask_user(&teacher::loss("loss_top_k"), message);
        }
        _ => draft.refuse("distillation_mode", "supported are sampled_token, topk_logits, full_logits"),
    }
}

/// Weighs the teacher's loss against the loss of the rewards.
fn weight(draft: &mut Draft) {
    let weight = draft.values.number("distillation_weight").unwrap_or(1.0);
    if weight >= 1.0 {
        draft.set(&teacher::loss("use_task_rewards"), Value::Bool(false), "distillation_weight");
        return draft.set_because("@actor.loss_agg_mode", text("seq-mean-token-mean"), "SDPOTrainer");
    }
    if weight <= 0.0 {
        return draft.refuse("distillation_weight", "0 learns from the rewards only: convert the command as `trl grpo`");
    }
    draft.set(&teacher::loss("use_task_rewards"), Value::Bool(true), "distillation_weight");
    draft.set(&teacher::loss("distillation_loss_coef"), float(weight / (1.0 - weight)), "distillation_weight");
    draft.note(format!(
        "distillation_weight {weight}: the loss, and the norm of its gradient, are TRL's divided by {}",
        1.0 - weight
    ));
    draft.set_because("@actor.clip_ratio_c", float(1e9), "TRL has no dual clip");
    let name = draft.values.text("loss_type").unwrap_or_else(|| "dapo".into());
    if !["grpo", "bnpo", "dapo", "dr_grpo"].contains(&name.as_str()) {
        return draft.refuse("loss_type", "supported are grpo, bnpo, dapo, dr_grpo");
    }
    grpo::losses(draft);
    draft.set_because("algorithm.adv_estimator", text("trl_grpo"), "SDPOTrainer");
    if name != "grpo" {
        draft.differ(format!(
            "loss_type {name}: the teacher's loss is averaged like the loss of the rewards; TRL averages it over each response first"
        ));
    }
}
