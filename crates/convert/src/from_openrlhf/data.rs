//! The model and the prompts of reinforcement learning.

use crate::peers::{Draft, int, set_files, text};
use burnish_hydra::inline;

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
        None => draft.ask_user("@model.path", "the folder of the model, or its name on the Hub: the command names none"),
    }
}

/// Sets the number of rows; the defaults stand for all of them.
pub fn samples(draft: &mut Draft) {
    let names = "data.max_samples max_samples";
    let is_given = draft.values.is_given(names);
    if let Some(most) = draft.values.count(names).filter(|most| is_given || *most < 1_000_000) {
        draft.set("data.train_max_samples", int(most), names);
        let several =
            draft.values.text("data.prompt_dataset prompt_data data.dataset dataset").is_some_and(|set| set.contains(','));
        if several {
            draft.note("OpenRLHF takes data.max_samples rows of each data set, and data.train_max_samples is of all together");
        }
    }
}

/// Refuses a template around prompts. OpenRLHF reads it in place of the chat template, and where it has a place for the prompt.
pub fn template(draft: &mut Draft) {
    let names = "data.input_template input_template";
    let is_chat = draft.values.flag("data.apply_chat_template apply_chat_template");
    let Some(template) = draft.values.text(names).filter(|template| !is_chat && template.contains("{}")) else { return };
    if draft.values.is_given(names) {
        draft.refuse(names, "write it into the column of the prompts");
    } else {
        let template = inline(&text(template));
        draft
            .note(format!("this edition of OpenRLHF writes {template} around a prompt: write it into the column of the prompts"));
    }
}
