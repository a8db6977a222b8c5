//! GOLD, the distillation of a teacher with other tokens, on responses from the data.

use super::common;
use crate::peers::{Draft, text};

/// Options of the loss for other tokens, which are settings with the same names.
const ULD: &[&str] = &[
    "uld_token_merge_strategy",
    "use_extended_uld",
    "uld_use_hybrid_loss",
    "uld_hybrid_matched_weight",
    "uld_hybrid_unmatched_weight",
    "uld_crossentropy_weight",
    "uld_distillation_weight",
    "uld_student_temperature",
    "uld_teacher_temperature",
    "uld_skip_student_eos",
    "uld_skip_teacher_eos",
];

/// Converts TRL's GOLD command to settings.
pub(super) fn derive(draft: &mut Draft) {
    common::batch(draft);
    if common::length(draft) {
        draft.set_because("data.truncation", text("left"), "GOLDTrainer keeps the last tokens of a longer row");
    }
    match draft.values.text("teacher_model_name_or_path") {
        Some(_) => draft.copy("teacher.path", "teacher_model_name_or_path"),
        None => draft.ask_user("teacher.path", "folder of the teacher, or its name on the Hub: the command does not name it"),
    }
    draft.set_because("data.messages_key", text("messages"), "GOLDTrainer's column");
    draft.note(
        "every assistant turn is trained on, but GOLDTrainer trains only on the last one: write \"train\": false into the other \
        messages. For rows of prompt and completion, replace data.messages_key by data.completion_key=completion",
    );
    if draft.values.number("lmbda").is_some_and(|share| share > 0.0) {
        let reason = "responses come from the data: set --lmbda 0. `distillation.*` of ppo_trainer.yaml learns from the student's own \
            responses, if the teacher has the student's tokens";
        draft.refuse("lmbda", reason);
    }
    if draft.values.flag("use_uld_loss") {
        other_tokens(draft);
    } else {
        draft.set("algorithm.loss_type", text("jsd"), "use_uld_loss");
        draft.copy("algorithm.temperature", "temperature");
    }
}

/// Sets the loss for a teacher with other tokens.
fn other_tokens(draft: &mut Draft) {
    draft.set("algorithm.loss_type", text("uld"), "use_uld_loss");
    for name in ULD {
        draft.copy(&format!("algorithm.{name}"), name);
    }
    match draft.values.text("uld_token_merge_strategy").as_deref() {
        Some("observed") => draft.note(
            "uld_token_merge_strategy observed: TRL reads the distributions one token too late, and never compares the first token of \
            an answer; here it is compared",
        ),
        None => draft.note("this edition of TRL has no uld_token_merge_strategy: tokens that are compared as one are merged by `bayesian`"),
        Some(_) => {}
    }
    draft.differ("the teacher reads its own chat template; TRL shows it the text of the student's");
    let (teacher, tokenizer) =
        (draft.values.text("teacher_model_name_or_path"), draft.values.text("teacher_tokenizer_name_or_path"));
    if tokenizer.is_some() && tokenizer != teacher {
        draft.refuse(
            "teacher_tokenizer_name_or_path",
            "the tokenizer is the one in the folder teacher.path: copy its files there",
        );
    }
}
