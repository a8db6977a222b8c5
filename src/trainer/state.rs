//! The state of a trainer other than weights, optimizers and position in the data, and its return from a checkpoint.

use anyhow::{Error, Result, bail};
use serde::{Deserialize, Serialize};

use crate::job::NothingUpdated;
use crate::trainer::advantages::Advantages;
use crate::trainer::learning::{LOAD_CONTENTS, LearningSide};
use crate::trainer::sampling::ReportedNames;
use burnish_algorithm::advantage::{PromptValues, RoleBaselines};
use burnish_algorithm::entropy_bonus::AdaptiveEntropy;
use burnish_algorithm::kl::KlController;
use burnish_checkpoint::Changes;
use burnish_data::SamplerState;
use burnish_util::interrupt::Interrupted;

/// Settings, or sections of settings, that change the scores which values of prompts are of.
const SCORES: [&str; 8] = [
    "reward_model",
    "custom_reward_function",
    "reward.function_kwargs",
    "algorithm.missing_eos_penalty",
    "algorithm.stop_properly_penalty_coef",
    "algorithm.reward_clip_range",
    "algorithm.turn_rewards",
    "data.max_response_length",
];

/// The state that a step changes, other than weights, optimizers and the position in the data.
#[derive(Clone, Serialize, Deserialize)]
pub struct TrainerState {
    pub kl_controller: Option<KlController>,
    pub reported: ReportedNames,
    #[serde(default)]
    pub tokens: u64,
    /// Weight of an entropy bonus that follows the entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_entropy: Option<AdaptiveEntropy>,
    /// Baselines of roles, for the estimator `rae`.
    #[serde(default, skip_serializing_if = "RoleBaselines::is_empty")]
    pub role_baselines: RoleBaselines,
    /// Values of the training prompts, for the estimator `a2po`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_values: Option<PromptValues>,
}

impl TrainerState {
    /// Adapts the state to settings that have changed since the checkpoint.
    ///
    /// # Errors
    /// If the batch size has changed and the checkpoint, from an earlier version, counts batches.
    pub fn adapted(
        self,
        advantages: &Advantages,
        learning: &LearningSide,
        data: &SamplerState,
        changes: &Changes,
    ) -> Result<Self> {
        let resized = ["data.gen_batch_size", "algorithm.filter_groups.enable"].into_iter().filter(|key| changes.has(key));
        let resized: Vec<&str> = resized.collect();
        if !resized.is_empty() && data.counts_batches() {
            bail!(
                "it is of an earlier version, whose position in the data counts batches, and {} has changed since: put it back, \
                 or take `extra` out of {LOAD_CONTENTS}",
                resized.join(", ")
            );
        }
        let kl_controller = advantages.resumed_kl_controller(self.kl_controller, changes);
        let adaptive_entropy = learning.resumed_entropy(self.adaptive_entropy, changes);
        let prompt_values = self.prompt_values.filter(|_| {
            let changed = SCORES.iter().find(|key| changes.has_in(key));
            changed.inspect(|key| tracing::warn!("{key} has changed: the values of prompts are estimated again")).is_none()
        });
        Ok(Self { kl_controller, adaptive_entropy, prompt_values, ..self })
    }
}

/// Marks an error before the first update of `step`: it ends the run with the state before the step. An interrupt stays an
/// interrupt.
pub(crate) fn nothing_updated(error: Error, step: u64) -> Error {
    match error.is::<Interrupted>() {
        true => error,
        false => NothingUpdated(error.context(format!("step {step}"))).into(),
    }
}
