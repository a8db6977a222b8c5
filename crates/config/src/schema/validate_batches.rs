//! Checks of the sizes of passes that the types cannot express.

use super::ppo::PpoConfig;
use crate::Report;

/// Checks the sizes of forward passes, which are required only if passes are cut by trajectories.
pub(super) fn passes(config: &PpoConfig, report: &mut Report) {
    let (rollout, reference) = (&config.actor_rollout_ref.rollout, &config.actor_rollout_ref.reference);
    let passes = [
        (
            "actor_rollout_ref.ref",
            (config.has_reference() || config.distillation.passes_before()) && !reference.log_prob_use_dynamic_bsz,
            reference.log_prob_micro_batch_size_per_gpu,
        ),
        ("actor_rollout_ref.rollout", !rollout.log_prob_use_dynamic_bsz, rollout.log_prob_micro_batch_size_per_gpu),
    ];
    for (part, by_trajectories, size) in passes {
        let key = format!("{part}.log_prob_micro_batch_size_per_gpu");
        if by_trajectories && size.is_none() {
            report.wrong(
                &key,
                format!("`{key}` is null, so the size of a forward pass is unknown"),
                format!("write {key}=N, or {part}.log_prob_use_dynamic_bsz=true"),
            );
        }
    }
}

/// Checks that the longest sequence fits into each token budget.
pub(super) fn token_budgets(config: &PpoConfig, report: &mut Report) {
    let (data, rollout, actor) = (&config.data, &config.actor_rollout_ref.rollout, &config.actor_rollout_ref.actor);
    let longest = data.max_prompt_length + data.max_response_length;
    let budgets = [
        ("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", actor.use_dynamic_bsz, actor.ppo_max_token_len_per_gpu),
        (
            "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu",
            config.actor_rollout_ref.reference.log_prob_use_dynamic_bsz,
            config.actor_rollout_ref.reference.log_prob_max_token_len_per_gpu,
        ),
        (
            "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
            rollout.log_prob_use_dynamic_bsz,
            rollout.log_prob_max_token_len_per_gpu,
        ),
    ];
    for (key, used, budget) in budgets {
        if used && budget < longest {
            let message = format!("`{key}` is {budget}, but one sequence may have {longest} tokens (prompt and response)");
            report.wrong(key, message, format!("write {key}={longest} or more"));
        }
    }
}
