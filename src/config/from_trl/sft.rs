//! Supervised fine-tuning.

use super::super::peers::{Draft, int, text};
use crate::hydra::Value;

pub fn derive(draft: &mut Draft) {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let each = draft.values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let batch = each.saturating_mul(count("gradient_accumulation_steps")).saturating_mul(draft.processes);
    let names = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps";
    draft.set("data.train_batch_size", int(batch), names);
    draft.set("data.micro_batch_size_per_gpu", int(each), "per_device_train_batch_size per_gpu_train_batch_size");
    let length = "max_length max_seq_length";
    draft.set("data.max_length", int(draft.values.count(length).unwrap_or(1024)), length);
    let keeps_end = draft.values.text("truncation_mode").is_some_and(|mode| mode == "keep_end");
    draft.set("data.truncation", text(if keeps_end { "left" } else { "right" }), "truncation_mode");
    if draft.values.flag("assistant_only_loss") {
        draft.set("data.messages_key", text("messages"), "assistant_only_loss");
    } else {
        let why = "TRL's rows of prompt and completion; for conversations messages_key: messages";
        draft.set_because("data.prompt_key", text("prompt"), why);
        draft.set_because("data.response_key", text("completion"), "of these TRL, too, trains on the completion alone");
        draft.set_because("data.response_dict_keys", Value::Null, "");
    }
    if draft.values.get("completion_only_loss") == Value::Bool(false) {
        draft.refuse("completion_only_loss", "prompts are not trained on");
    }
    if let Some(loss) = draft.values.text("loss_type").filter(|loss| !["nll", "chunked_nll"].contains(&loss.as_str())) {
        draft.refuse("loss_type", format!("`{loss}` has no counterpart: the loss is the mean over the tokens of the batch"));
    }
}
