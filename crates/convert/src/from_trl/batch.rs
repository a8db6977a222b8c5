//! The batch of the RLOO and GRPO trainers. TRL counts responses per device and update; our batch sizes count prompts.

use crate::peers::{Draft, int};

const UPDATE: &str = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps num_generations";

/// Sets the batch sizes, and returns the number of updates in a step.
pub(super) fn derive(draft: &mut Draft) -> f64 {
    let values = &draft.values;
    let count = |names: &str| values.count(names).unwrap_or(1);
    let n = count("num_generations");
    let each = values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let micro = each.saturating_mul(draft.processes);
    let update = micro.saturating_mul(count("gradient_accumulation_steps"));
    let steps = values.count("steps_per_generation").map(|steps| micro.saturating_mul(steps));
    let generation = values.count("generation_batch_size").or(steps).unwrap_or(update);
    let epochs = count("num_iterations");
    // TRL repeats a generation that is smaller than an update, with the same policy.
    let step = generation.max(update);
    if !update.is_multiple_of(n) {
        let reason = format!(
            "an update has {update} responses ({each} per device, times processes and gradient_accumulation_steps); this must be a \
            multiple of num_generations"
        );
        draft.refuse("num_generations", reason);
    } else if !step.is_multiple_of(update) {
        let reason = format!("a batch of {generation} responses must be a multiple of the {update} responses of an update");
        let name = if draft.values.is_set("generation_batch_size") { "generation_batch_size" } else { "steps_per_generation" };
        draft.refuse(name, reason);
    }
    let mini = (update / n).max(1);
    let prompts = step.div_ceil(n).div_ceil(mini).saturating_mul(mini);
    let names = format!("{UPDATE} steps_per_generation generation_batch_size");
    draft.set("data.train_batch_size", int(prompts), &names);
    draft.set("@actor.ppo_mini_batch_size", int(mini), UPDATE);
    micro_batches(draft, each, "per_device_train_batch_size per_gpu_train_batch_size");
    draft.set("@actor.ppo_epochs", int(epochs), "num_iterations");
    draft.set("actor_rollout_ref.rollout.n", int(n), "num_generations");
    (prompts / mini) as f64 * epochs as f64
}

/// Sets the micro-batch sizes, which do not change results.
pub(super) fn micro_batches(draft: &mut Draft, each: usize, names: &str) {
    draft.set("@actor.ppo_micro_batch_size_per_gpu", int(each), names);
    for section in ["rollout", "ref"] {
        draft.set(&format!("actor_rollout_ref.{section}.log_prob_micro_batch_size_per_gpu"), int(each), names);
    }
}

/// Sets the batch of a trainer that counts prompts and makes one update in a step.
pub(super) fn of_prompts(draft: &mut Draft) {
    let count = |names: &str| draft.values.count(names).unwrap_or(1);
    let each = draft.values.count("per_gpu_train_batch_size").unwrap_or_else(|| count("per_device_train_batch_size"));
    let prompts = each.saturating_mul(count("gradient_accumulation_steps")).saturating_mul(draft.processes);
    let names = "per_device_train_batch_size per_gpu_train_batch_size gradient_accumulation_steps";
    draft.set("data.train_batch_size", int(prompts), names);
    draft.set("@actor.ppo_mini_batch_size", int(prompts), names);
    micro_batches(draft, each, "per_device_train_batch_size per_gpu_train_batch_size");
}
