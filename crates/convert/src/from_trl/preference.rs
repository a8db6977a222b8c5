//! Converts the options of the trainers of preferences and reward models.

use super::common;
use crate::peers::{Draft, float, list, text};
use burnish_hydra::Value;

/// The losses of `CPOTrainer`, with our names.
const CPO: &[(&str, &str)] =
    &[("sigmoid", "cpo"), ("hinge", "cpo_hinge"), ("ipo", "cpo_ipo"), ("simpo", "simpo"), ("alphapo", "alphapo")];

/// The losses of `TPOTrainer`, with our names.
const TPO: &[(&str, &str)] = &[("sigmoid", "tpo"), ("hinge", "tpo_hinge"), ("ipo", "tpo_ipo"), ("tpo-l", "tpo_l")];

/// Converts a command of DPO, CPO, ORPO, KTO or TPO to settings.
pub(super) fn derive(draft: &mut Draft) {
    common::batch(draft);
    common::length(draft);
    let loss = match draft.trainer.name {
        "dpo" => losses(draft),
        "cpo" => cpo(draft),
        "tpo" => named(draft, TPO),
        "orpo" => text("orpo"),
        _ => text(draft.values.text("loss_type").unwrap_or_else(|| "kto".into())),
    };
    draft.set("algorithm.loss_type", loss, "loss_type");
    columns(draft);
}

/// Converts a command of the reward trainer to settings.
pub(super) fn reward(draft: &mut Draft) {
    common::batch(draft);
    if common::length(draft) {
        draft.set_because("data.truncation", text("filter"), "TRL leaves out pairs above max_length");
    }
    draft.set_because("algorithm.loss_type", text("sigmoid"), "RewardTrainer");
    draft.note("if the rows have a column `margin`, set data.margin_key=margin: TRL reads it");
    columns(draft);
}

/// Returns the loss or the losses of DPO.
fn losses(draft: &mut Draft) -> Value {
    let items = draft.values.items("loss_type");
    if draft.values.number("label_smoothing").is_some_and(|share| share > 0.0) {
        let reads = |item: &Value| ["exo_pair", "robust", "aot", "aot_unpaired"].iter().any(|name| *item == text(*name));
        if !items.iter().any(reads) {
            draft.note(
                "--label_smoothing is ignored: TRL reads it only for exo_pair, robust and aot; loss_type=cdpo is sigmoid with it",
            );
            draft.settings.shift_remove("algorithm.label_smoothing");
        }
    }
    if let [one] = items.as_slice() { one.clone() } else { list(items) }
}

fn cpo(draft: &mut Draft) -> Value {
    let name = draft.values.text("loss_type").unwrap_or_else(|| "sigmoid".into());
    if name == "alphapo" {
        draft.set_because("algorithm.cpo_alpha", float(0.0), "TRL sets it for alphapo");
    }
    named(draft, CPO)
}

/// Returns our name of the loss; the first one for an unknown loss or none.
fn named(draft: &mut Draft, losses: &[(&str, &str)]) -> Value {
    let name = draft.values.text("loss_type").unwrap_or_else(|| "sigmoid".into());
    let found = losses.iter().find(|(there, _)| *there == name);
    if found.is_none() {
        let known: Vec<&str> = losses.iter().map(|(there, _)| *there).collect();
        draft.refuse("loss_type", format!("supported are {}", known.join(", ")));
    }
    text(found.unwrap_or(&losses[0]).1)
}

/// Sets the columns, which have fixed names in TRL.
fn columns(draft: &mut Draft) {
    let names: &[(&str, &str)] = match draft.trainer.name {
        "kto" => &[("prompt_key", "prompt"), ("completion_key", "completion"), ("label_key", "label")],
        "tpo" => {
            &[("prompt_key", "prompt"), ("chosen_key", "chosen"), ("rejected_key", "rejected"), ("reference_key", "reference")]
        }
        _ => &[("prompt_key", "prompt"), ("chosen_key", "chosen"), ("rejected_key", "rejected")],
    };
    for (key, column) in names {
        draft.set(&format!("data.{key}"), text(*column), "");
    }
}
