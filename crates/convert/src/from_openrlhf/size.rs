//! Converts the options of batch sizes and lengths.

use crate::peers::{Draft, int, text};

const N: &str = "rollout.n_samples_per_prompt n_samples_per_prompt";
const UPDATE: &str = "train.batch_size train_batch_size";
const MAX_LEN: &str = "data.max_len max_len";
const NEW: &str = "rollout.max_new_tokens max_new_tokens generate_max_len";

pub(super) fn derive(draft: &mut Draft) {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let (n, update) = (count(N), count(UPDATE));
    let prompts = count("rollout.batch_size rollout_batch_size");
    let epochs = count("train.max_epochs max_epochs");
    let requested = (update / n).clamp(1, prompts.max(1));
    let mini = (1..=requested).rev().find(|size| prompts.is_multiple_of(*size)).unwrap_or(1);
    if mini * n != update {
        let reason = format!(
            "an update must have all {n} responses to its prompts, and their number must divide the {prompts} prompts of a rollout: \
            {mini} is used"
        );
        draft.refuse(UPDATE, reason);
    }
    draft.set("@actor.ppo_mini_batch_size", int(mini), &format!("{UPDATE} {N}"));
    draft.set("@actor.ppo_epochs", int(epochs), "train.max_epochs max_epochs");
    draft.copy("@actor.ppo_micro_batch_size_per_gpu", "train.micro_batch_size micro_train_batch_size");
    for section in ["rollout", "ref"] {
        let key = format!("actor_rollout_ref.{section}.log_prob_micro_batch_size_per_gpu");
        draft.copy(&key, "rollout.micro_batch_size micro_rollout_batch_size");
    }
    let length = lengths(draft);
    tokens(draft, length);
}

/// Sets the lengths of prompts and responses, and returns the token limit of both together.
fn lengths(draft: &mut Draft) -> usize {
    let fixed = draft.values.count("prompt_max_len").filter(|_| draft.values.has("prompt_max_len"));
    let length = draft.values.count(MAX_LEN);
    let new = draft.values.count(NEW);
    let (prompt, response, names) = match (fixed, length, new) {
        (Some(prompt), _, new) => (prompt, new.unwrap_or(1024), "prompt_max_len"),
        (None, length, Some(new)) => {
            let length = length.unwrap_or(2048);
            (if length > new { length - new } else { length }, new, "data.max_len max_len rollout.max_new_tokens max_new_tokens")
        }
        (None, length, None) => {
            let length = length.unwrap_or(2048);
            draft.set("actor_rollout_ref.rollout.max_model_len", int(length), MAX_LEN);
            (length - 1, length, MAX_LEN)
        }
    };
    draft.set("data.max_prompt_length", int(prompt), names);
    draft.set("data.max_response_length", int(response), if new.is_some() { NEW } else { names });
    draft.set_because("data.truncation", text("left"), "OpenRLHF keeps the end of a longer prompt");
    prompt.saturating_add(response)
}

/// Sets the tokens of a micro-batch, with dynamic batches; a micro-batch holds at least one whole sequence.
fn tokens(draft: &mut Draft, length: usize) {
    if !draft.values.flag("train.dynamic_batch_enable use_dynamic_batch") {
        return;
    }
    let train = "train.max_tokens_per_gpu train_max_tokens_per_gpu";
    let max = draft.values.count(train).unwrap_or(16192).max(length);
    draft.set("@actor.ppo_max_token_len_per_gpu", int(max), train);
    let rollout = "rollout.max_tokens_per_gpu rollout_max_tokens_per_gpu";
    if let Some(tokens) = draft.values.count(rollout) {
        for section in ["rollout", "ref"] {
            let key = format!("actor_rollout_ref.{section}.log_prob_max_token_len_per_gpu");
            draft.set(&key, int(tokens.max(length)), rollout);
        }
    }
    let critic = draft.values.text("algo.advantage.estimator advantage_estimator").is_none_or(|name| name == "gae");
    if critic {
        draft.set("critic.ppo_max_token_len_per_gpu", int(max), train);
    }
}
