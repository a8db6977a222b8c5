//! Generalised knowledge distillation, on given answers.

use super::common;
use crate::peers::{Draft, text};

/// Sets what the trainer comes to.
pub fn derive(draft: &mut Draft) {
    common::batch(draft);
    if common::length(draft) {
        draft.set_because("data.truncation", text("left"), "GKDTrainer keeps the last tokens of a longer row");
    }
    match draft.values.text("teacher_model_name_or_path") {
        Some(_) => draft.copy("teacher.path", "teacher_model_name_or_path"),
        None => draft.ask_user("teacher.path", "the folder of the teacher, or its name on the Hub: the command names none"),
    }
    draft.set_because("algorithm.loss_type", text("jsd"), "GKDTrainer");
    draft.set_because("data.messages_key", text("messages"), "GKDTrainer's column");
    draft.note(
        "GKDTrainer trains on the last turn alone, and here every turn of the assistant is trained on: write \"train\": false into \
         the messages before it",
    );
    if draft.values.number("lmbda").is_some_and(|share| share > 0.0) {
        let reason = "answers are given ones; on the student's own the RL loop distils: `distillation.*` of ppo_trainer.yaml";
        draft.refuse("lmbda", reason);
    }
}
