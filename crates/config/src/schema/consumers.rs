//! The intermediate values that a run of reinforcement learning uses. If nothing uses advantages, the run skips the estimator,
//! the critic and the KL in the reward, and reports their settings as ignored.

use super::ppo::PpoConfig;

impl PpoConfig {
    /// True if the loss uses advantages; false if the loss of a teacher is the only loss.
    pub fn reads_advantages(&self) -> bool {
        !self.distillation.stands_alone()
    }

    /// True if training uses scores: in advantages, or to select prompts or responses.
    pub fn reads_scores(&self) -> bool {
        let algorithm = &self.algorithm;
        let selects = algorithm.filter_groups.enable || algorithm.use_pf_ppo || algorithm.post_processing.path.is_some();
        self.reads_advantages() || selects
    }

    /// True if a loss uses the importance weights of the rollout correction: the loss of the rewards, or a teacher's policy
    /// gradient.
    pub fn reads_importance_weights(&self) -> bool {
        self.reads_advantages() || self.distillation.distillation_loss.use_policy_gradient
    }

    /// True if the rewards have a KL term and something uses them.
    pub fn has_kl_in_reward(&self) -> bool {
        self.algorithm.use_kl_in_reward && self.reads_advantages()
    }
}
