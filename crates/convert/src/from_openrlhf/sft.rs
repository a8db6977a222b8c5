//! Converts the options of supervised fine-tuning, mainly the columns of its rows.

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

pub(super) fn derive(draft: &mut Draft) {
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
        draft.refuse(OUTPUT, "is required: without it, apply_chat_template or pretrain_mode, OpenRLHF drops every row");
        texts(draft);
    }
}

/// Sets the column of texts, with a loss on the whole text.
fn texts(draft: &mut Draft) {
    unset(draft, &["data.prompt_key", CHAT_TEMPLATE]);
    draft.set("data.text_key", draft.values.get(INPUT), &format!("{INPUT} {PRETRAIN}"));
    draft.differ("texts get the tokenizer's begin and end tokens; OpenRLHF does not add them");
}

/// Sets the column of whole conversations.
fn conversations(draft: &mut Draft) {
    unset(draft, &["data.prompt_key"]);
    draft.set("data.messages_key", draft.values.get(INPUT), &format!("{INPUT} {MULTITURN}"));
    prefix(draft);
    if !draft.values.flag(MULTITURN) {
        draft.differ(
            "every assistant turn is trained on, but OpenRLHF without multiturn trains only on the last one: write \"train\": false \
            into the other messages",
        );
    }
}

/// Sets the columns of conversations and of their last messages.
fn continued(draft: &mut Draft) {
    draft.copy("data.completion_key", OUTPUT);
    draft.set("data.loss_mask", text("assistant"), MULTITURN);
    prefix(draft);
    draft.differ("the output column must be a list of one message; in OpenRLHF it is the message itself");
}

fn prefix(draft: &mut Draft) {
    draft.set_because("data.assistant_mask", text("prefix"), "OpenRLHF renders the conversation before and with a message");
}

/// Sets the columns of prompts for the chat template, and of responses.
fn responses(draft: &mut Draft) {
    response_key(draft);
    draft.note(
        "a text prompt becomes [{role: user, content: …}] with a text response; if both are lists of messages, set \
        data.completion_key instead of data.response_key",
    );
}

fn response_key(draft: &mut Draft) {
    draft.copy("data.response_key", OUTPUT);
    draft.set_because("data.response_dict_keys", Value::Null, "");
}

/// Sets the columns of prompts for OpenRLHF's own template, and of responses.
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
        // OpenRLHF ignores a template without `{}` for the prompt.
        [_] => draft.copy("data.completion_key", OUTPUT),
        _ => {
            draft.refuse(TEMPLATE, "only text around one `{}` is supported: write the template as model.custom_chat_template");
            draft.copy("data.completion_key", OUTPUT);
        }
    }
    draft.differ(
        "the end token follows a response directly; OpenRLHF puts a space before it and tokenizes all together with the prompt",
    );
}

/// Writes a text as a string literal of Jinja.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t"))
}

fn unset(draft: &mut Draft, keys: &[&str]) {
    for key in keys {
        draft.settings.shift_remove(*key);
    }
}
