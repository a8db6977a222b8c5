//! The numbers that a run of reinforcement learning reads. Where nothing reads advantages, all that makes them is left out: the estimator,
//! the critic, the KL in the reward. Its settings are then named as ignored.

use super::ppo::PpoConfig;

impl PpoConfig {
    /// True if the loss reads advantages; false where the loss of a teacher stands alone.
    pub fn reads_advantages(&self) -> bool {
        !self.distillation.stands_alone()
    }

    /// True if something that trains reads the score of a response: advantages, or a choice of prompts or responses by it.
    pub fn reads_scores(&self) -> bool {
        let algorithm = &self.algorithm;
        let chooses = algorithm.filter_groups.enable || algorithm.use_pf_ppo || algorithm.post_processing.path.is_some();
        self.reads_advantages() || chooses
    }

    /// True if a loss reads the importance weights of the rollout correction: that of the rewards, or a policy gradient of the teacher.
    pub fn reads_importance_weights(&self) -> bool {
        self.reads_advantages() || self.distillation.distillation_loss.use_policy_gradient
    }

    /// True if the rewards have a KL term, and something reads them.
    pub fn has_kl_in_reward(&self) -> bool {
        self.algorithm.use_kl_in_reward && self.reads_advantages()
    }
}
