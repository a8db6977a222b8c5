//! Converts the options of preferences, reward models and distillation.

use super::{common, data, sft};
use crate::peers::{Draft, text};
use burnish_hydra::Value;

const SMOOTHING: &str = "model.label_smoothing label_smoothing";
const IPO: &str = "model.ipo_enable ipo";
const MARGIN: &str = "model.margin_loss_enable margin_loss";
const LOSS: &str = "model.loss_type loss";
const PROMPT: &str = "data.prompt_key prompt_key";

/// Converts `train_dpo` and `train_kto` to settings.
pub(super) fn derive(draft: &mut Draft) {
    rows(draft);
    if draft.trainer.name == "train_kto" {
        return labelled(draft);
    }
    let is_smoothed = draft.values.number(SMOOTHING).is_some_and(|share| share > 0.0);
    let (loss, names) = match (draft.values.flag(IPO), is_smoothed) {
        (true, _) => ("ipo_sum", IPO),
        (false, true) => ("cdpo", SMOOTHING),
        (false, false) => ("sigmoid", IPO),
    };
    draft.set("algorithm.loss_type", text(loss), names);
    let nll = "model.nll_loss_coef nll_loss_coef";
    if draft.values.number(nll).is_some_and(|factor| factor > 0.0) {
        draft.copy("algorithm.nll_loss_coef", nll);
    }
    draft.copy("ref.model.path", "ref.model_name_or_path ref_pretrain");
}

/// Converts `train_kto` to settings.
fn labelled(draft: &mut Draft) {
    draft.set_because("algorithm.loss_type", text("kto"), "train_kto");
    if draft.values.text("output_key").is_none() {
        let message = "column of the responses, each a list of one message: without --output_key OpenRLHF takes the last message \
        of a conversation";
        draft.ask_user("data.completion_key", message);
    }
}

/// Converts `train_rm` and `train_prm` to settings.
pub(super) fn reward(draft: &mut Draft) {
    rows(draft);
    if draft.trainer.name == "train_prm" {
        return draft.set_because("algorithm.loss_type", text("cross_entropy"), "train_prm");
    }
    let is_sigmoid = draft.values.text(LOSS).is_none_or(|name| name == "sigmoid");
    draft.set("algorithm.loss_type", text(if is_sigmoid { "sigmoid" } else { "logexp" }), LOSS);
    draft.set_because("algorithm.init_head", text("scaled"), "OpenRLHF's head");
    if draft.values.flag(MARGIN) {
        draft.set("data.margin_key", text("margin"), MARGIN);
    }
}

/// Sets the options that all stages share, and notes the requirements on rows.
fn rows(draft: &mut Draft) {
    common::derive(draft);
    if draft.values.has(PROMPT) && draft.values.text(PROMPT).is_none() {
        // Both responses are then whole conversations.
        draft.set("data.prompt_key", Value::Null, PROMPT);
    }
    data::template(draft);
    if draft.values.flag("data.apply_chat_template apply_chat_template") {
        draft.differ(
            "--apply_chat_template: the chat template applies to lists of messages alone; OpenRLHF also renders text prompts and responses",
        );
    }
}

/// Converts `train_kd` to settings.
pub(crate) fn distil(draft: &mut Draft) {
    sft::derive(draft);
    match draft.values.text("teacher_model") {
        Some(_) => draft.copy("teacher.path", "teacher_model"),
        None => draft.ask_user("teacher.path", "folder of the teacher, or its name on the Hub: the command does not name it"),
    }
    draft.set_because("algorithm.loss_type", text("cross_entropy"), "KDLoss");
}
