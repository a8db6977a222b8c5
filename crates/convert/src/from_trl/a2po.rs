//! Converts the options of the A*-PO trainer, which samples one response to each prompt.

use super::{batch, grpo, rewards};
use crate::peers::{Draft, int, text};

/// Converts TRL's A*-PO command, and returns the number of updates in a step.
pub(super) fn derive(draft: &mut Draft) -> f64 {
    batch::of_prompts(draft);
    draft.set_because("actor_rollout_ref.rollout.n", int(1), "A2POTrainer samples one response to each prompt");
    grpo::responses(draft);
    rewards::derive(draft);
    draft.set_because("algorithm.adv_estimator", text("a2po"), "A2POTrainer");
    draft.set_because("@actor.policy_loss.loss_mode", text("a2po"), "A2POTrainer");
    if draft.values.flag("filter_all_incorrect") {
        draft.differ(
            "filter_all_incorrect: prompts without a score above 0 are left out, in TRL those whose scores add up to 0; the run keeps the \
             number of steps of all prompts",
        );
    }
    if draft.values.number("temperature").is_some_and(|temperature| temperature != 1.0) {
        draft.note("temperature: log-probabilities use the sampling temperature; TRL's use temperature 1");
    }
    1.0
}
