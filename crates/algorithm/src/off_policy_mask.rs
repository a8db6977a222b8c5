//! Leaves out responses that the policy has moved away from and whose advantage is negative.
//!
//! Source: DeepSeek-AI 2025, DeepSeek-V3.2, section 3.1. TRL: get_off_policy_mask. slime: compute_opsm_mask.
//!
//! Deviation: the share that slime reports counts tokens of tools above and not below the line, and can exceed 1; here it is a
//! share of trained tokens.

use super::policy_loss::Metric;
use super::sequences;

/// The tokens of one micro-batch of whole responses, as columns.
#[derive(Clone, Copy, Debug)]
pub struct OffPolicyColumns<'a> {
    pub offsets: &'a [usize],
    pub mask: &'a [f32],
    /// log π of the current policy, followed by log π of the policy that generated.
    pub log_prob: &'a [f32],
    pub behaviour_log_prob: &'a [f32],
    pub advantages: &'a [f32],
}

/// Returns 1 for tokens that stay in the policy loss, 0 for the others: tokens with a negative advantage in responses where the mean
/// of log π_rollout − log π over the trained tokens is above `threshold`. Denominators of the loss do not change.
pub fn off_policy_keep(x: &OffPolicyColumns, threshold: f64) -> Vec<f32> {
    let mut keep = vec![1.0; x.mask.len()];
    for tokens in sequences(x.offsets) {
        let trained = || tokens.clone().filter(|&t| x.mask[t] != 0.0);
        let distance: f64 = trained().map(|t| f64::from(x.behaviour_log_prob[t]) - f64::from(x.log_prob[t])).sum();
        if distance / trained().count().max(1) as f64 > threshold {
            tokens.clone().filter(|&t| x.advantages[t] < 0.0).for_each(|t| keep[t] = 0.0);
        }
    }
    keep
}

/// Returns `actor/off_policy_masked`, the share of trained tokens that are left out.
pub(super) fn off_policy_share(mask: &[f32], keep: &[f32]) -> Metric {
    let trained = || mask.iter().zip(keep).filter(|&(&m, _)| m != 0.0);
    let left_out = trained().filter(|&(_, &keep)| keep == 0.0).count();
    Metric { name: "actor/off_policy_masked".into(), sum: left_out as f64, count: trained().count() as f64 }
}
