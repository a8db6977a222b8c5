//! The models that learn, with the objects that train them.
//!
//! Methods of [`LearningSide`] are in `checkpoint`, `critic`, `log_prob`, `reference`, `update` and here.

use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::custom_loss::CustomLoss;
use super::distillation::Distillation;
use burnish_algorithm::aggregate::Aggregation;
use burnish_algorithm::loss::PolicyObjective;
use burnish_config::{BatchPlan, PpoConfig};
use burnish_model::CausalLm;
use burnish_optim::Learner;

/// The models that learn, with the objects that train them.
pub struct LearningSide {
    pub config: Arc<PpoConfig>,
    pub plan: BatchPlan,
    pub actor: Learner,
    /// Value model, for estimators that need one.
    pub critic: Option<Learner>,
    /// Frozen initial policy, or the model of `ref.model.path`, if a KL term needs it; with `ref.sync_ref_model` it follows the
    /// policy.
    pub reference: Option<CausalLm>,
    /// Teacher that judges what the policy samples, with `distillation.enabled`.
    pub distillation: Option<Distillation>,
    /// Objective that the actor minimises.
    pub objective: PolicyObjective,
    /// The user's policy loss, with `actor.policy_loss.path`; `objective` then has no policy loss.
    pub custom_loss: Option<Arc<CustomLoss>>,
    pub aggregation: &'static Aggregation,
    pub(crate) critic_aggregation: &'static Aggregation,
    /// Temperature that divides the logits in every log-prob of training (`rollout.temperature`).
    pub temperature: f32,
    /// True if the policy that generated counts as the old policy (`algorithm.rollout_correction.bypass_mode`).
    pub bypass: bool,
    /// True if the old policy's log-probs need a separate pass.
    pub needs_old_log_probs: bool,
    /// True if that pass returns Σ π² of each token.
    pub reads_sum_pi_squared: bool,
    /// True if the KL term in the rewards is the exact divergence.
    pub(crate) full_kl_in_reward: bool,
}

impl LearningSide {
    /// Current policy.
    pub fn policy(&self) -> &CausalLm {
        &self.actor.model
    }

    pub fn has_critic(&self) -> bool {
        self.critic.is_some()
    }

    /// Returns true if a teacher passes over every batch before the update.
    pub(crate) fn has_teacher_pass(&self) -> bool {
        self.distillation.as_ref().is_some_and(Distillation::passes_before)
    }

    pub fn has_reference(&self) -> bool {
        self.reference.is_some()
    }

    pub fn needs_old_log_probs(&self) -> bool {
        self.needs_old_log_probs
    }

    /// Returns the first step that updates the actor; until then `trainer.critic_warmup` trains only the critic.
    pub(crate) fn first_actor_step(&self) -> u64 {
        (self.config.trainer.critic_warmup as u64).max(1)
    }

    /// Waits for a GPU, which runs asynchronously, so that its work counts in the time of the right phase.
    pub(super) fn wait(&self) -> Result<()> {
        self.actor.ranks.agree(self.actor.model.device.sync().map_err(|e| anyhow!("the device failed: {e:?}")))
    }
}
