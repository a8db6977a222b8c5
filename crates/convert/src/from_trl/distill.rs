//! Generalised knowledge distillation (GKD) on responses from the data.

use super::common;
use crate::peers::{Draft, text};

/// Converts TRL's GKD command to settings.
pub(super) fn derive(draft: &mut Draft) {
    common::batch(draft);
    if common::length(draft) {
        draft.set_because("data.truncation", text("left"), "GKDTrainer keeps the last tokens of a longer row");
    }
    match draft.values.text("teacher_model_name_or_path") {
        Some(_) => draft.copy("teacher.path", "teacher_model_name_or_path"),
        None => draft.ask_user("teacher.path", "folder of the teacher, or its name on the Hub: the command does not name it"),
    }
    draft.set_because("algorithm.loss_type", text("jsd"), "GKDTrainer");
    draft.set_because("data.messages_key", text("messages"), "GKDTrainer's column");
    draft.note(
        "every assistant turn is trained on, but GKDTrainer trains only on the last one: write \"train\": false into the other \
        messages",
    );
    if draft.values.number("lmbda").is_some_and(|share| share > 0.0) {
        let reason = "responses come from the data; for the student's own responses use `distillation.*` of ppo_trainer.yaml";
        draft.refuse("lmbda", reason);
    }
}
