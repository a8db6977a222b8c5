//! The correction of one batch, and its report.

use super::off_policy;
use super::rejection::{self, Rejection};
use super::trained::{CorrectionMetrics, Trained};
use super::weights::Importance;

/// The correction of the difference (`algorithm.rollout_correction`). The default corrects nothing and only reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutCorrection {
    /// Importance weights, `rollout_is*`.
    pub(super) importance: Option<Importance>,
    /// Criteria that a token must all pass, `rollout_rs*`.
    pub(super) rejections: Vec<Rejection>,
    /// A sequence is rejected if the ratio of one of its tokens is below this, `rollout_token_veto_threshold`.
    pub(super) veto: Option<f64>,
    /// Rejected tokens stay in the mask, with weight 0; `count_rejected`.
    pub(super) count_rejected: bool,
}

/// The loss that `bypass_mode` computes (`algorithm.rollout_correction.loss_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassLoss {
    PpoClip,
    Reinforce,
}

/// The result of a correction on one batch; columns with one value per token of the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Corrected {
    /// The importance weight of each token, 0 where the mask is 0; rejected tokens keep theirs, with `count_rejected` theirs is 0.
    /// `None` without `rollout_is` and `count_rejected`.
    pub weights: Option<Vec<f32>>,
    /// The mask, with 0 on rejected tokens. verl normalises by the remaining tokens, OpenRLHF and TRL by all tokens: with
    /// `count_rejected` the mask is unchanged.
    pub mask: Vec<f32>,
    /// Metrics under verl's names, `rollout_corr/…`.
    pub metrics: Vec<(String, f64)>,
}

impl RolloutCorrection {
    /// Returns false if the correction changes neither a weight nor the mask.
    pub fn corrects(&self) -> bool {
        self.importance.is_some() || !self.rejections.is_empty() || self.veto.is_some()
    }

    /// Weights and rejects the tokens of a batch. `old_log_prob` is log π of the policy that is trained, `rollout_log_prob` log π
    /// of the policy that generated. Values of masked tokens are ignored.
    ///
    /// # Panics
    /// If columns differ in length.
    pub fn apply(&self, offsets: &[usize], mask: &[f32], old_log_prob: &[f32], rollout_log_prob: &[f32]) -> Corrected {
        let batch = Trained::new(offsets, mask, old_log_prob, rollout_log_prob);
        if batch.is_empty() {
            let weights = (self.importance.is_some() || self.count_rejected).then(|| vec![0.0; mask.len()]);
            return Corrected { weights, mask: mask.to_vec(), metrics: Vec::new() };
        }
        let mut report = CorrectionMetrics::default();
        let weights = self.importance.as_ref().map(|importance| batch.scatter(&importance.weigh(&batch, &mut report)));
        let keep = rejection::keep(&self.rejections, self.veto, &batch, &mut report);
        let keep = batch.scatter(&keep.iter().map(|&kept| f64::from(u8::from(kept))).collect::<Vec<_>>());
        off_policy::report(&batch, &mut report);
        if self.count_rejected {
            let weights = weights.unwrap_or_else(|| mask.to_vec()).iter().zip(keep).map(|(w, k)| w * k).collect();
            return Corrected { weights: Some(weights), mask: mask.to_vec(), metrics: report.0 };
        }
        Corrected { weights, mask: mask.iter().zip(keep).map(|(m, k)| m * k).collect(), metrics: report.0 }
    }
}

/// Returns metrics of the distance between the two policies (verl `compute_offpolicy_metrics`), corrected or not. Arguments and
/// panics are the same as in [`RolloutCorrection::apply`]. Empty without a trained token.
pub fn off_policy_metrics(offsets: &[usize], mask: &[f32], old_log_prob: &[f32], rollout_log_prob: &[f32]) -> Vec<(String, f64)> {
    RolloutCorrection::default().apply(offsets, mask, old_log_prob, rollout_log_prob).metrics
}
