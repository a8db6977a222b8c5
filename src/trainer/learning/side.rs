//! The models that learn, with the objects that train them.
//!
//! Methods of [`LearningSide`] are in `checkpoint`, `critic`, `log_prob`, `reference`, `update` and here.

use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::custom_loss::CustomLoss;
use super::distillation::Distillation;
use burnish_algorithm::aggregate::Aggregation;
use burnish_algorithm::entropy_bonus::{AdaptiveEntropy, EntropyTarget};
use burnish_algorithm::loss::PolicyObjective;
use burnish_checkpoint::Changes;
use burnish_config::{BatchPlan, PpoConfig};
use burnish_model::CausalLm;
use burnish_optim::Learner;

/// Key of the weight of the entropy bonus, or of its first value.
const ENTROPY_COEFF: &str = "actor_rollout_ref.actor.entropy_coeff";

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
    /// Entropy bonus whose weight follows the entropy, with `actor.use_adaptive_entropy`.
    pub(crate) adaptive_entropy: Option<(AdaptiveEntropy, EntropyTarget)>,
    pub aggregation: &'static Aggregation,
    pub(crate) critic_aggregation: &'static Aggregation,
    /// Temperature that divides the logits in every log-prob of training (`rollout.temperature`).
    pub temperature: f32,
    /// True if ratios are to the policy that generated: in bypass mode, and in losses that are defined so.
    pub is_to_rollout: bool,
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

    /// Reference, or the present policy of a run without one.
    pub(crate) fn initial_policy(&self) -> &CausalLm {
        self.reference.as_ref().unwrap_or_else(|| self.policy())
    }

    pub fn has_critic(&self) -> bool {
        self.critic.is_some()
    }

    /// Returns true if a teacher passes over every batch before the update.
    pub(crate) fn has_teacher_pass(&self) -> bool {
        self.distillation.as_ref().is_some_and(Distillation::passes_before)
    }

    /// Returns the weight of the entropy bonus and the entropy that it follows, if the run has one.
    pub(crate) fn adaptive_entropy(&self) -> Option<&AdaptiveEntropy> {
        self.adaptive_entropy.as_ref().map(|(entropy, _)| entropy)
    }

    /// Replaces it, if the run has one.
    pub(crate) fn set_adaptive_entropy(&mut self, saved: Option<AdaptiveEntropy>) {
        if let (Some((own, _)), Some(saved)) = (&mut self.adaptive_entropy, saved) {
            *own = saved;
        }
    }

    /// Returns that of a resumed run: the checkpoint's, unless the first weight has changed since.
    pub(crate) fn resumed_entropy(&self, saved: Option<AdaptiveEntropy>, changes: &Changes) -> Option<AdaptiveEntropy> {
        match (self.adaptive_entropy(), saved) {
            (Some(own), None) => {
                tracing::warn!("the checkpoint has no weight of the entropy; it starts at {ENTROPY_COEFF}");
                Some(own.clone())
            }
            (Some(own), Some(_)) if changes.has(ENTROPY_COEFF) => Some(own.clone()),
            (_, saved) => saved,
        }
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
