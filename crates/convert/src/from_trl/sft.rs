//! Converts the options of supervised fine-tuning.

use super::common;
use super::data::evaluates;
use crate::peers::{Draft, list, text};
use burnish_hydra::{Value, inline};

const MASKS: &str = "completion_only_loss assistant_only_loss";
const TEXT: &str = "dataset_text_field";

pub(super) fn derive(draft: &mut Draft) {
    common::batch(draft);
    common::length(draft);
    rows(draft);
    packing(draft);
    loss(draft);
}

/// Sets the columns of the rows, which TRL detects in the data, and the trained parts of each row.
fn rows(draft: &mut Draft) {
    let is_of_assistant = draft.values.flag("assistant_only_loss");
    let field = draft.values.text(TEXT).filter(|_| draft.values.is_set(TEXT));
    // Without the option, TRL trains only on completions if the rows have them.
    let answers = draft.values.get("completion_only_loss");
    if answers == Value::Bool(true) {
        completions(draft, is_of_assistant);
    } else if field.is_some() && !is_of_assistant {
        texts(draft);
    } else {
        conversations(draft, is_of_assistant);
    }
    if answers == Value::Bool(false) {
        let mask = if is_of_assistant { "assistant" } else { "all" };
        draft.note(format!(
            "--completion_only_loss false: it applies only to rows of prompt and completion. For such rows, set \
            data.completion_key=completion data.loss_mask={mask} instead of the columns below"
        ));
    }
    if let Some(field) = field.filter(|_| !draft.settings.contains_key("data.text_key")) {
        let option = if is_of_assistant { "assistant_only_loss" } else { "completion_only_loss" };
        let field = inline(&text(field));
        draft.note(format!("--dataset_text_field {field} is ignored: TRL does not read it with --{option}"));
    }
}

/// Sets the column of completions, the trained part of each row.
fn completions(draft: &mut Draft, is_of_assistant: bool) {
    draft.set("data.completion_key", text("completion"), "completion_only_loss");
    let mask = if is_of_assistant { list([text("assistant"), text("completion")]) } else { text("completion") };
    draft.set("data.loss_mask", mask, MASKS);
}

/// Sets the column of texts, with a loss on the whole text.
fn texts(draft: &mut Draft) {
    if !draft.values.has("completion_only_loss") && !draft.values.flag("packing") {
        draft.note("the end token after a text is trained on; this edition of TRL does not add one");
    }
    draft.copy("data.text_key", TEXT);
}

/// Sets the column of conversations.
fn conversations(draft: &mut Draft, is_of_assistant: bool) {
    draft.set("data.messages_key", text("messages"), "assistant_only_loss");
    draft.set("data.loss_mask", text(if is_of_assistant { "assistant" } else { "all" }), "assistant_only_loss");
    if !is_of_assistant {
        draft.note(
            "rows are assumed to be conversations; TRL detects their type. Otherwise replace data.messages_key and data.loss_mask: set \
            data.completion_key=completion for rows of prompt and completion, or data.text_key=text for texts",
        );
    }
}

/// Sets the packing of rows into units, which the batch then counts.
fn packing(draft: &mut Draft) {
    let packs = draft.values.flag("packing");
    // The first edition always concatenates all rows and cuts them into units.
    let strategy = draft.values.text("packing_strategy").unwrap_or_else(|| "wrapped".into());
    let evaluated = if let Value::Bool(packs) = draft.values.get("eval_packing") { packs } else { packs };
    if evaluated != packs && strategy != "bfd" && evaluates(draft) {
        draft.refuse("eval_packing", "must equal packing: data.packing applies to training and validation rows");
    }
    if !packs {
        return;
    }
    let here = match strategy.as_str() {
        "bfd" => "bfd",
        "bfd_split" | "bfd-requeue" => "bfd_split",
        "wrapped" => "wrapped",
        _ => return draft.refuse("packing_strategy", "supported are bfd, bfd_split, wrapped"),
    };
    draft.set("data.packing", text(here), "packing packing_strategy");
    draft.settings.shift_remove("data.truncation");
    if here == "bfd" {
        draft.set_because("data.truncation", text("right"), "TRL's bfd keeps the beginning of a longer row");
    }
}

fn loss(draft: &mut Draft) {
    match draft.values.text("loss_type").as_deref() {
        None => {}
        Some("nll" | "chunked_nll") => draft.set("algorithm.loss_type", text("nll"), "loss_type"),
        Some("dft") => {
            draft.copy("algorithm.loss_type", "loss_type");
            let removed = draft.settings.shift_remove("algorithm.label_smoothing");
            if removed.is_some_and(|setting| setting.is_set) {
                draft.note("--label_smoothing_factor is ignored: TRL does not read it with --loss_type dft");
            }
        }
        Some(_) => draft.refuse("loss_type", "supported are nll, chunked_nll, dft"),
    }
    if draft.values.number("neftune_noise_alpha").is_some_and(|alpha| alpha > 0.0) {
        draft.copy("algorithm.neftune_noise_alpha", "neftune_noise_alpha");
    }
}
