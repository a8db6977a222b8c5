//! Converts the options of the model and of prompts for reinforcement learning.

use crate::peers::{Draft, int, set_files, text};
use burnish_hydra::inline;

pub(super) fn derive(draft: &mut Draft) {
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
        draft.note("the chat template applies only to lists of messages: change a text prompt to [{role: user, content: …}]");
    }
    if let Some(key) = draft.values.text("data.label_key label_key") {
        draft.note(format!("move the labels of column `{key}` to the field ground_truth of a column reward_model"));
    }
    template(draft);
}

/// Sets the path of the model.
pub(super) fn model(draft: &mut Draft) {
    let names = "actor.model_name_or_path model.model_name_or_path pretrain";
    match draft.values.text(names) {
        Some(_) => draft.copy("@model.path", names),
        None => draft.ask_user("@model.path", "folder of the model, or its name on the Hub: the command does not name it"),
    }
}

/// Sets the limit of rows; the defaults mean all rows.
pub(super) fn samples(draft: &mut Draft) {
    let names = "data.max_samples max_samples";
    let is_given = draft.values.is_given(names);
    if let Some(most) = draft.values.count(names).filter(|most| is_given || *most < 1_000_000) {
        draft.set("data.train_max_samples", int(most), names);
        let several =
            draft.values.text("data.prompt_dataset prompt_data data.dataset dataset").is_some_and(|set| set.contains(','));
        if several {
            draft.note("data.train_max_samples limits all data sets together; OpenRLHF's data.max_samples limits each one");
        }
    }
}

/// Refuses a template around prompts. OpenRLHF uses it without the chat template, and only with `{}` for the prompt.
pub(super) fn template(draft: &mut Draft) {
    let names = "data.input_template input_template";
    let is_chat = draft.values.flag("data.apply_chat_template apply_chat_template");
    let Some(template) = draft.values.text(names).filter(|template| !is_chat && template.contains("{}")) else { return };
    if draft.values.is_given(names) {
        draft.refuse(names, "apply the template to the prompts in the data");
    } else {
        let template = inline(&text(template));
        draft.note(format!("this edition of OpenRLHF writes {template} around prompts: apply it to the prompts in the data"));
    }
}
