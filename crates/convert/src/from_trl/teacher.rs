//! Settings of trainers in which a teacher judges sampled responses.

use crate::peers::{Draft, float, list, text};
use burnish_hydra::Value;

/// Returns the key of a setting of the teacher's loss.
pub(super) fn loss(name: &str) -> String {
    format!("distillation.distillation_loss.{name}")
}

/// Names the teacher, another model.
pub(super) fn other_model(draft: &mut Draft) {
    const KEY: &str = "distillation.teacher_models.teacher_model.model_path";
    match draft.values.text("teacher_model_name_or_path") {
        Some(_) => draft.copy(KEY, "teacher_model_name_or_path"),
        None => draft.ask_user(KEY, "folder of the teacher, or its name on the Hub: the command does not name it"),
    }
}

/// Learns from the teacher, without the rewards.
pub(super) fn alone(draft: &mut Draft, class: &str) {
    draft.set_because("distillation.enabled", Value::Bool(true), class);
    draft.set_because(&loss("use_task_rewards"), Value::Bool(false), class);
}

/// Sets a reward function for a trainer without rewards, because every run scores its responses.
pub(super) fn without_rewards(draft: &mut Draft, class: &str) {
    let function = list([text("think_format_reward")]);
    draft.set_because("reward_model.reward_functions", function, format!("{class} has no rewards; scores are only metrics"));
}

/// Sets a divergence between teacher and policy; `why`: the options that choose the measure.
pub(super) fn divergence(draft: &mut Draft, beta: f64, why: &str, option: &str) {
    let mode = match beta {
        0.0 => "forward_kl",
        1.0 => "reverse_kl",
        _ => "jsd",
    };
    draft.set(&loss("loss_mode"), text(mode), why);
    if mode == "jsd" {
        draft.set(&loss("beta"), float(beta), option);
    }
}
