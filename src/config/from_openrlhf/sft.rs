//! Supervised fine-tuning.

use super::super::peers::{Draft, set_files, text};
use super::data;
use crate::hydra::Value;

const INPUT: &str = "data.input_key input_key";
const OUTPUT: &str = "data.output_key output_key";

pub fn derive(draft: &mut Draft) {
    data::model(draft);
    draft.copy("data.train_batch_size", "train.batch_size train_batch_size");
    draft.copy("data.micro_batch_size_per_gpu", "train.micro_batch_size micro_train_batch_size");
    draft.copy("data.max_length", "data.max_len max_len");
    draft.set_because("data.truncation", text("right"), "OpenRLHF keeps the beginning of a longer example");
    draft.copy("trainer.total_epochs", "train.max_epochs max_epochs");
    let set = draft.values.text("data.dataset dataset");
    let split = draft.values.text("data.dataset_split dataset_split train_split").unwrap_or_else(|| "train".into());
    set_files(draft, "data.train_files", set.as_deref(), &split, "data.dataset dataset");
    match draft.values.text("eval.dataset eval_dataset") {
        Some(set) => {
            let split = draft.values.text("eval.split eval_split").unwrap_or_else(|| "train".into());
            set_files(draft, "data.val_files", Some(&set), &split, "eval.dataset eval_dataset");
        }
        None => draft.set("data.val_files", Value::Null, "eval.dataset eval_dataset"),
    }
    data::samples(draft);
    columns(draft);
}

fn columns(draft: &mut Draft) {
    let is_whole = draft.values.text(OUTPUT).is_none();
    if is_whole || draft.values.flag("data.multiturn multiturn") {
        draft.settings.shift_remove("data.prompt_key");
        draft.set("data.messages_key", draft.values.get(INPUT), &format!("{INPUT} data.multiturn multiturn"));
        if is_whole && !draft.values.flag("data.apply_chat_template apply_chat_template") {
            draft.refuse(OUTPUT, "a row is a prompt and a response, or a conversation; plain text is not trained on");
        }
        return;
    }
    draft.copy("data.response_key", OUTPUT);
    draft.set_because("data.response_dict_keys", Value::Null, "");
    if draft.values.flag("data.apply_chat_template apply_chat_template") {
        draft.note(
            "prompts go through the chat template where they are lists of messages: a text becomes [{role: user, content: …}]",
        );
    } else if !draft.values.is_given("data.input_template input_template") {
        draft.note("OpenRLHF writes each prompt into `User: {}\\nAssistant: `: write that into the column of the prompts");
    }
    data::template(draft);
}
