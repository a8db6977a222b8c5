//! Preferences, reward models and distillation.

use super::{common, data, sft};
use crate::peers::{Draft, text};
use burnish_hydra::Value;

const SMOOTHING: &str = "model.label_smoothing label_smoothing";
const IPO: &str = "model.ipo_enable ipo";
const MARGIN: &str = "model.margin_loss_enable margin_loss";
const LOSS: &str = "model.loss_type loss";
const PROMPT: &str = "data.prompt_key prompt_key";

/// Sets what `train_dpo` and `train_kto` come to.
pub fn derive(draft: &mut Draft) {
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

/// Sets what `train_kto` comes to.
fn labelled(draft: &mut Draft) {
    draft.set_because("algorithm.loss_type", text("kto"), "train_kto");
    if draft.values.text("output_key").is_none() {
        let message = "the column of the answers: without --output_key OpenRLHF takes the last message of a conversation for the \
                       answer, which here is a column of its own, a list of one message";
        draft.ask_user("data.completion_key", message);
    }
}

/// Sets what `train_rm` and `train_prm` come to.
pub fn reward(draft: &mut Draft) {
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

/// Sets what every stage has, and says what the rows must be.
fn rows(draft: &mut Draft) {
    common::derive(draft);
    if draft.values.has(PROMPT) && draft.values.text(PROMPT).is_none() {
        // The two answers are whole conversations then, whatever other columns there are.
        draft.set("data.prompt_key", Value::Null, PROMPT);
    }
    data::template(draft);
    if draft.values.flag("data.apply_chat_template apply_chat_template") {
        draft.note("prompts and answers go through the chat template where they are lists of messages: a text stays as it is");
    }
}

/// Sets what `train_kd` comes to.
pub fn distil(draft: &mut Draft) {
    sft::derive(draft);
    match draft.values.text("teacher_model") {
        Some(_) => draft.copy("teacher.path", "teacher_model"),
        None => draft.ask_user("teacher.path", "the folder of the teacher, or its name on the Hub: the command names none"),
    }
    draft.set_because("algorithm.loss_type", text("cross_entropy"), "KDLoss");
}
