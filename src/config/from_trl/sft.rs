//! Supervised fine-tuning.

use super::super::peers::{Draft, text};
use super::stage;
use crate::hydra::Value;

pub fn derive(draft: &mut Draft) {
    stage::batch(draft);
    stage::length(draft);
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
