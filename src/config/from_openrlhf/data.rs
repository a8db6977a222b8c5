//! The model and the prompts of reinforcement learning.

use super::super::peers::{Draft, int, set_files};

pub fn derive(draft: &mut Draft) {
    model(draft);
    let set = draft.values.text("data.prompt_dataset prompt_data");
    let split = draft.values.text("data.prompt_split prompt_split").unwrap_or_else(|| "train".into());
    set_files(draft, "data.train_files", set.as_deref(), &split, "data.prompt_dataset prompt_data");
    samples(draft);
    if let Some(set) = draft.values.text("eval.dataset eval_dataset") {
        let split = draft.values.text("eval.split eval_split").unwrap_or_else(|| "train".into());
        set_files(draft, "data.val_files", Some(&set), &split, "eval.dataset eval_dataset");
    }
    if draft.values.flag("data.apply_chat_template apply_chat_template") {
        draft.note(
            "prompts go through the chat template where they are lists of messages: a text becomes [{role: user, content: …}]",
        );
    }
    if let Some(key) = draft.values.text("data.label_key label_key") {
        draft.note(format!("the labels of column `{key}` are read from the field ground_truth of column reward_model"));
    }
    template(draft);
}

/// Sets the path of the model, of either stage.
pub fn model(draft: &mut Draft) {
    let names = "actor.model_name_or_path model.model_name_or_path pretrain";
    match draft.values.text(names) {
        Some(_) => draft.copy("@model.path", names),
        None => draft.hole("@model.path", "the folder of the model, or its name on the Hub: the command names none"),
    }
}

/// Sets the number of rows; the defaults stand for all of them.
pub fn samples(draft: &mut Draft) {
    let names = "data.max_samples max_samples";
    if let Some(most) = draft.values.count(names).filter(|most| *most < 1_000_000) {
        draft.set("data.train_max_samples", int(most), names);
    }
}

/// Refuses a template around prompts.
pub fn template(draft: &mut Draft) {
    let names = "data.input_template input_template";
    if draft.values.is_given(names) && draft.values.text(names).is_some() {
        draft.refuse(names, "write it into the column of the prompts");
    }
}
