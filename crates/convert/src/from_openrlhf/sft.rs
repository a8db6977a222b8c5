//! Supervised fine-tuning: the columns of its rows.

use super::common;
use crate::peers::{Draft, text};
use burnish_hydra::Value;

const INPUT: &str = "data.input_key input_key";
const OUTPUT: &str = "data.output_key output_key";
const MULTITURN: &str = "data.multiturn multiturn";
const CHAT: &str = "data.apply_chat_template apply_chat_template";
const TEMPLATE: &str = "data.input_template input_template";
const PRETRAIN: &str = "model.pretrain_mode_enable pretrain_mode";
const CHAT_TEMPLATE: &str = "model.custom_chat_template";

pub fn derive(draft: &mut Draft) {
    common::derive(draft);
    let has_output = draft.values.text(OUTPUT).is_some();
    let is_multiturn = draft.values.flag(MULTITURN);
    if draft.values.flag(PRETRAIN) {
        texts(draft);
    } else if is_multiturn || draft.values.flag(CHAT) {
        match (has_output, is_multiturn) {
            (true, true) => continued(draft),
            (true, false) => responses(draft),
            (false, _) => conversations(draft),
        }
    } else if has_output {
        templated(draft);
    } else {
        draft.refuse(OUTPUT, "without it OpenRLHF leaves out every row, unless it is told to apply_chat_template or to pretrain");
        texts(draft);
    }
}

/// Sets the column of texts, all of which is trained on.
fn texts(draft: &mut Draft) {
    unset(draft, &["data.prompt_key", CHAT_TEMPLATE]);
    draft.set("data.text_key", draft.values.get(INPUT), &format!("{INPUT} {PRETRAIN}"));
    draft.note("OpenRLHF trains on a text as it stands: here it begins and ends with the tokens that the tokenizer has for that");
}

/// Sets the column of whole conversations.
fn conversations(draft: &mut Draft) {
    unset(draft, &["data.prompt_key"]);
    draft.set("data.messages_key", draft.values.get(INPUT), &format!("{INPUT} {MULTITURN}"));
    prefix(draft);
    if !draft.values.flag(MULTITURN) {
        draft.note(
            "without multiturn OpenRLHF trains on the last turn alone, and here every turn of the assistant is trained on: write \
             \"train\": false into the messages before it",
        );
    }
}

/// Sets the columns of conversations and of the message that ends each.
fn continued(draft: &mut Draft) {
    draft.copy("data.completion_key", OUTPUT);
    draft.set("data.loss_mask", text("assistant"), MULTITURN);
    prefix(draft);
    draft.note("the output column is a message in OpenRLHF, and here a list of messages: write it as a list of one");
}

fn prefix(draft: &mut Draft) {
    draft.set_because("data.assistant_mask", text("prefix"), "OpenRLHF renders what comes before a message, and with it");
}

/// Sets the columns of prompts in the chat template and of their responses.
fn responses(draft: &mut Draft) {
    response_key(draft);
    draft.note(
        "a prompt that is text becomes [{role: user, content: …}], and the response is text: where both are lists of messages, set \
         data.completion_key in place of data.response_key",
    );
}

fn response_key(draft: &mut Draft) {
    draft.copy("data.response_key", OUTPUT);
    draft.set_because("data.response_dict_keys", Value::Null, "");
}

/// Sets the columns of prompts in OpenRLHF's own template and of their responses.
fn templated(draft: &mut Draft) {
    unset(draft, &[CHAT_TEMPLATE]);
    let template = draft.values.text(TEMPLATE).unwrap_or_default();
    match template.split("{}").collect::<Vec<_>>()[..] {
        [before, after] if !template.replace("{}", "").contains(['{', '}', '$']) => {
            let user = format!("{} ~ message.content ~ {}", literal(before), literal(after));
            let template = format!(
                "{{% for message in messages %}}{{% if message.role == \"user\" %}}{{{{ {user} }}}}{{% else %}}{{{{ message.content ~ \
                 eos_token }}}}{{% endif %}}{{% endfor %}}"
            );
            draft.set(CHAT_TEMPLATE, text(template), TEMPLATE);
            response_key(draft);
        }
        // A template without a place for the prompt is none.
        [_] => draft.copy("data.completion_key", OUTPUT),
        _ => {
            draft.refuse(TEMPLATE, "it is more than a text around the prompt: write it as model.custom_chat_template");
            draft.copy("data.completion_key", OUTPUT);
        }
    }
    draft.note("OpenRLHF writes a space between a response and its end, and tokenizes both with the prompt: here the end follows at once");
}

/// Writes a text as Jinja does between quotes.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t"))
}

fn unset(draft: &mut Draft, keys: &[&str]) {
    for key in keys {
        draft.settings.shift_remove(*key);
    }
}
