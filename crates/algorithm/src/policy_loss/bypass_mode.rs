//! The loss against the policy that generated: its log-probabilities replace the log-probabilities of the policy before the
//! update.

use super::{LossInput, MiniBatch, PolicyLoss, PolicyLossOutput, Prepared, vanilla};
use crate::rollout_correction::{BypassLoss, RolloutCorrection};
use burnish_registry::{Refusal, When};

/// The switch that chooses this loss.
const SWITCH: &str = "algorithm.rollout_correction.bypass_mode";

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "bypass_mode",
    aliases: &[],
    doc: "The policy that generated as π_old, without a pass of the model to recompute it; rejection and weights with the current \
          policy.\n\
          Formula: ppo_clip: L = keep·vanilla(π, π_rollout); reinforce: L = −keep·w·A·log π; w and keep from rollout correction \
          with r = π/π_rollout, no gradient through them.\n\
          Source: Li et al. 2025, When speed kills stability, https://richardli.xyz/rl-collapse.\n\
          verl: compute_policy_loss_bypass_mode, compute_policy_loss_reinforce.\n\
          Deviation: weights, their batch normalisation and metrics are of the whole mini-batch; in verl they depend on how it is cut \
          into micro-batches.\n\
          Deviation: means over tokens or sequences count the rejected ones in every aggregation, as with verl's global \
          counts; verl's seq-mean-token-mean divides by the tokens left in each sequence.\n\
          When: generation and training disagree little, and recomputing log-probabilities costs too much.",
    aggregation: None,
    prepare: Some(prepare),
    needs: &[],
    reads: vanilla::CLIPPING,
    refuses: &[Refusal {
        key: SWITCH,
        when: When::Off,
        why: "the loss `NAME` needs rollout correction in bypass mode",
        instead: "write KEY=true, which chooses this loss",
    }],
    chosen_by: Some(SWITCH),
    run,
};

/// The factor is 1 on kept tokens and 0 on others, for `reinforce` times the importance weight.
fn prepare(x: &MiniBatch, _: &mut dyn FnMut() -> f64) -> Prepared {
    let nothing = RolloutCorrection::default();
    let correction = x.options.rollout_correction.as_ref().unwrap_or(&nothing);
    let corrected = correction.apply(x.offsets, x.mask, x.log_prob, x.old_log_prob);
    let (keep, mut metrics) = (corrected.mask, corrected.metrics);
    if x.options.bypass_loss == BypassLoss::PpoClip {
        return Prepared { factor: keep, metrics };
    }
    let positions = || (0..keep.len()).filter(|&t| keep[t] != 0.0);
    let kl: f64 = positions().map(|t| f64::from(x.old_log_prob[t]) - f64::from(x.log_prob[t])).sum();
    metrics.push(("actor/ppo_kl".to_owned(), kl / positions().count().max(1) as f64));
    let factor = match corrected.weights {
        Some(weights) => weights.iter().zip(&keep).map(|(w, k)| w * k).collect(),
        None => keep,
    };
    Prepared { factor, metrics }
}

/// # Panics
/// If there is no factor from [`prepare`].
fn run(x: &LossInput) -> PolicyLossOutput {
    let factor = x.factor.clone().expect("bypass_mode is prepared on the whole mini-batch");
    match x.options.bypass_loss {
        BypassLoss::PpoClip => {
            let PolicyLossOutput { per_token, metrics } = (vanilla::LOSS.run)(&LossInput {
                log_prob: x.log_prob.clone(),
                old_log_prob: x.old_log_prob.clone(),
                advantages: x.advantages.clone(),
                mask: factor.clone(),
                offsets: x.offsets,
                // The ratio is already relative to the policy that generated.
                rollout_is_weights: None,
                factor: None,
                options: x.options,
            });
            PolicyLossOutput { per_token: per_token * factor, metrics }
        }
        BypassLoss::Reinforce => {
            let per_token = (factor * x.advantages.clone() * x.log_prob.clone()).neg();
            PolicyLossOutput { per_token, metrics: Vec::new() }
        }
    }
}
