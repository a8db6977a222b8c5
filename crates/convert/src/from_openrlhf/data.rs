//! Converts the options of the model and of prompts for reinforcement learning.

use crate::peers::{Draft, int, set_files, text};
use burnish_hydra::{Value, inline};

const CHAT: &str = "data.apply_chat_template apply_chat_template";
const TEMPLATE: &str = "data.input_template input_template";
const LABEL: &str = "data.label_key label_key";

pub(super) fn derive(draft: &mut Draft) {
    model(draft);
    let set = draft.values.text("data.prompt_dataset prompt_data");
    let split = draft.values.text("data.prompt_split prompt_split").unwrap_or_else(|| "train".into());
    set_files(draft, "data.train_files", set.as_deref(), &split, "data.prompt_dataset prompt_data");
    samples(draft);
    match draft.values.text("eval.dataset eval_dataset") {
        Some(set) => {
            let split = draft.values.text("eval.split eval_split").unwrap_or_else(|| "train".into());
            set_files(draft, "data.val_files", Some(&set), &split, "eval.dataset eval_dataset");
        }
        None => draft.set("data.val_files", Value::Null, "eval.dataset eval_dataset"),
    }
    rendering(draft);
    labels(draft);
}

/// Sets the rendering of prompts that are texts.
fn rendering(draft: &mut Draft) {
    let is_chat = draft.values.flag(CHAT);
    draft.set("data.apply_chat_template", Value::Bool(is_chat), CHAT);
    // OpenRLHF uses a template without the chat template, and only with `{}` for the prompt.
    match draft.values.text(TEMPLATE).filter(|template| !is_chat && template.contains("{}")) {
        Some(template) if template.matches("{}").count() == 1 && !template.replace("{}", "").contains(['{', '}']) => {
            draft.copy("data.input_template", TEMPLATE);
        }
        Some(_) => draft.refuse(TEMPLATE, "only text around one `{}` is supported"),
        None => {}
    }
}

/// Sets the column of the correct answers; without one, OpenRLHF's functions get empty labels.
fn labels(draft: &mut Draft) {
    match draft.values.text(LABEL) {
        Some(key) => draft.set("data.label_key", text(key), LABEL),
        None => draft.set("data.label_key", text(""), LABEL),
    }
    draft.set_because("data.reward_fn_key", Value::Null, "rows have no data source");
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
    let is_set = draft.values.is_set(names);
    if let Some(max) = draft.values.count(names).filter(|max| is_set || *max < 1_000_000) {
        draft.set("data.train_max_samples", int(max), names);
        let several =
            draft.values.text("data.prompt_dataset prompt_data data.dataset dataset").is_some_and(|set| set.contains(','));
        if several {
            draft.differ("data.train_max_samples limits all data sets together; OpenRLHF's data.max_samples limits each one");
        }
    }
}

/// Refuses a template around the prompts of pairs and judged steps, for which there is no setting.
pub(super) fn template(draft: &mut Draft) {
    let is_chat = draft.values.flag(CHAT);
    let Some(template) = draft.values.text(TEMPLATE).filter(|template| !is_chat && template.contains("{}")) else { return };
    if draft.values.is_set(TEMPLATE) {
        draft.refuse(TEMPLATE, "apply the template to the prompts in the data");
    } else {
        let template = inline(&text(template));
        draft.differ(format!("this release of OpenRLHF writes {template} around prompts: apply it to the prompts in the data"));
    }
}
