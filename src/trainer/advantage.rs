//! Phase `adv`: the KL term of the rewards, then the advantage estimator. Plain Rust on ragged columns.

use super::Trainer;
use super::batch::Batch;
use crate::algorithm::advantage::{AdvantageInput, AdvantageOptions};
use crate::algorithm::kl::apply_kl_in_reward;
use crate::tracking::Metrics;

impl Trainer {
    pub(super) fn advantages(&mut self, batch: &mut Batch, metrics: &mut Metrics) {
        batch.rewards = match (&mut self.kl_in_reward, &batch.old_log_prob, &batch.ref_log_prob) {
            (Some((penalty, controller)), Some(old), Some(reference)) => {
                let kl =
                    apply_kl_in_reward(&batch.offsets, &batch.mask, &batch.scores, old, reference, None, *penalty, controller);
                metrics.set("actor/reward_kl_penalty", kl.current_kl);
                metrics.set("actor/reward_kl_penalty_coeff", kl.coef);
                kl.rewards
            }
            _ => batch.scores.clone(),
        };
        let output = (self.estimator.run)(&AdvantageInput {
            offsets: &batch.offsets,
            rewards: &batch.rewards,
            mask: &batch.mask,
            group: &batch.groups(),
            scores: &batch.scores,
            options: AdvantageOptions {
                gamma: self.config.algorithm.gamma,
                norm_adv_by_std_in_grpo: self.config.algorithm.norm_adv_by_std_in_grpo,
                ..Default::default()
            },
            ..Default::default()
        });
        batch.advantages = output.advantages;
        batch.returns = output.returns;
    }
}
