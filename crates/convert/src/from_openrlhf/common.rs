//! Converts the options that all stages other than reinforcement learning share: model, batch, lengths and files.

use super::data;
use crate::peers::{Draft, float, list, set_files, sets, text};
use burnish_hydra::Value;

const EVAL: &str = "eval.dataset eval_dataset";
const SHARES: &str = "data.dataset_probs dataset_probs";

/// Sets the options that all stages share.
pub(super) fn derive(draft: &mut Draft) {
    data::model(draft);
    draft.copy("data.train_batch_size", "train.batch_size train_batch_size");
    draft.copy("data.micro_batch_size_per_gpu", "train.micro_batch_size micro_train_batch_size");
    draft.copy("data.max_length", "data.max_len max_len");
    draft.set_because("data.truncation", text("right"), "OpenRLHF keeps the beginning of a longer example");
    draft.copy("trainer.total_epochs", "train.max_epochs max_epochs");
    let set = draft.values.text("data.dataset dataset");
    let split = draft.values.text("data.dataset_split dataset_split train_split").unwrap_or_else(|| "train".into());
    set_files(draft, "data.train_files", set.as_deref(), &split, "data.dataset dataset");
    weights(draft, set.as_deref());
    // Early releases validate on another split of the same data set.
    let eval_set = (!draft.values.has(EVAL)).then(|| set.clone()).flatten();
    match draft.values.text(EVAL).or(eval_set) {
        Some(set) => {
            let split = draft.values.text("eval.split eval_split").unwrap_or_else(|| "train".into());
            set_files(draft, "data.val_files", Some(&set), &split, "eval.dataset eval_dataset eval_split");
        }
        None => draft.set("data.val_files", Value::Null, EVAL),
    }
    data::samples(draft);
}

/// Sets the weights of several data sets.
fn weights(draft: &mut Draft, set: Option<&str>) {
    let Some(shares) = draft.values.text(SHARES) else { return };
    let weights: Option<Vec<f64>> =
        shares.split(',').map(|share| share.trim().parse().ok().filter(|share| *share > 0.0)).collect();
    let files = match draft.settings.get("data.train_files").map(|setting| &setting.value) {
        Some(Value::List(files)) => Some(files.len()),
        Some(_) => Some(1),
        // The user must set one file for each data set.
        None => set.map(|set| sets(set).count()),
    };
    match weights {
        Some(weights) if weights.len() == 1 && files.is_none_or(|files| files == 1) => {}
        Some(weights) if files.is_none_or(|files| files == weights.len()) => {
            draft.set("data.train_weights", list(weights.into_iter().map(float)), SHARES);
        }
        _ => draft.refuse(SHARES, "must be one positive number for each of data.train_files"),
    }
}
