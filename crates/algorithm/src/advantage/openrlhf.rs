//! The common part of OpenRLHF's estimators: a baseline without the KL term, a clip of the result, and reward-to-go of the rest.
//!
//! Token rewards are computed here: the shaped score is on the last trained token. The KL term, the difference of scores and
//! rewards, stays on its tokens and contributes to the return of earlier tokens. The baseline therefore does not contain the KL,
//! unlike the baseline of TRL's RLOO. OpenRLHF clamps each KL estimate to ±10 first; here the KL estimators' own bounds apply.

use super::stats::mean;
use super::{AdvantageInput, AdvantageOutput};
use crate::sequences;
use burnish_registry::{Refusal, When};

/// Bounds of a score after its baseline, OpenRLHF's default of `reward.clip_range`.
const CLIP: f64 = 10.0;

/// The settings of scores and KL term together, which these estimators read separately.
pub(crate) const REFUSES: &[Refusal] = &[Refusal {
    key: "algorithm.whiten_rewards",
    when: When::On,
    why: "`NAME` reads scores and KL terms apart, and `KEY` is about their sum",
    instead: "leave it out, or choose another algorithm.adv_estimator",
}];

/// Returns advantages: the scores of a group shaped by `shape` and clipped, then reward-to-go with `gamma` per position, tool
/// tokens included.
pub(super) fn run(input: &AdvantageInput, shape: impl Fn(&[f64]) -> Vec<f64>, gamma: f64, whiten: bool) -> AdvantageOutput {
    let scores: Vec<f64> =
        sequences(input.offsets).map(|tokens| input.scores[tokens].iter().map(|&s| f64::from(s)).sum()).collect();
    let shaped = input.by_group(&scores, shape);
    let mut returns = vec![0.0; input.mask.len()];
    for (tokens, shaped) in sequences(input.offsets).zip(shaped) {
        let last = input.trained(tokens.clone()).next_back();
        let mut running = 0.0;
        for t in tokens.rev() {
            running *= gamma;
            if input.mask[t] != 0.0 {
                running += f64::from(input.rewards[t]) - f64::from(input.scores[t]);
            }
            if Some(t) == last {
                running += shaped.clamp(-CLIP, CLIP);
            }
            returns[t] = running;
        }
    }
    if whiten { input.output(&whitened(&returns, input.mask), &returns) } else { input.output(&returns, &returns) }
}

/// Returns (value − mean)/sqrt(max(var, 1e-8)), var with n, over the unmasked tokens.
fn whitened(values: &[f64], mask: &[f32]) -> Vec<f64> {
    let kept: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&v, _)| v).collect();
    let mean_value = mean(&kept);
    let variance = mean(&kept.iter().map(|v| (v - mean_value).powi(2)).collect::<Vec<_>>());
    let scale = variance.max(1e-8).sqrt();
    values.iter().map(|v| (v - mean_value) / scale).collect()
}
