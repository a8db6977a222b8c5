//! Supervised fine-tuning.

use super::super::peers::Draft;
use super::{data, stage};
use crate::hydra::Value;

const INPUT: &str = "data.input_key input_key";
const OUTPUT: &str = "data.output_key output_key";

pub fn derive(draft: &mut Draft) {
    stage::derive(draft);
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
