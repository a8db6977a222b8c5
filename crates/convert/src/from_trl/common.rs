//! Converts the options that all stages other than reinforcement learning share: batch and lengths.

use crate::peers::{Draft, int, text};
use burnish_hydra::Value;

/// Sets the batch size and the micro-batch size, in rows.
pub(super) fn batch(draft: &mut Draft) {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let each = draft.values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let batch = each.saturating_mul(count("gradient_accumulation_steps")).saturating_mul(draft.processes);
    let names = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps";
    draft.set("data.train_batch_size", int(batch), names);
    draft.set("data.micro_batch_size_per_gpu", int(each), "per_device_train_batch_size per_gpu_train_batch_size");
}

/// Sets the token limit of a row, and the truncation of longer rows. Returns false if TRL has no limit.
pub(super) fn length(draft: &mut Draft) -> bool {
    let length = "max_length max_seq_length";
    if draft.values.is_set("max_length") && draft.values.get("max_length") == Value::Null {
        draft.set("data.truncation", text("error"), "max_length");
        draft.note("max_length is null, so that TRL does not truncate: set data.max_length to the length of the longest row");
        return false;
    }
    draft.set("data.max_length", int(draft.values.count(length).unwrap_or(1024)), length);
    let side = match draft.values.text("truncation_mode").as_deref() {
        None | Some("keep_start") => "right",
        Some("keep_end") => "left",
        Some(_) => {
            draft.refuse("truncation_mode", "supported are keep_start and keep_end");
            "right"
        }
    };
    draft.set("data.truncation", text(side), "truncation_mode");
    true
}
