//! The common part of OpenRLHF's estimators: a baseline without the KL term, a clip of the result, and reward-to-go of the rest.
//!
//! Token rewards are computed here: the shaped score is on the last trained token. The KL term, the difference of scores and
//! rewards, stays on its tokens and contributes to the return of earlier tokens. The baseline therefore does not contain the KL,
//! unlike the baseline of TRL's RLOO. OpenRLHF clamps each KL estimate to ±10 first; here the KL estimators' own bounds apply.

use super::stats::mean;
use super::{AdvantageInput, AdvantageOutput};
use crate::sequences;
use burnish_registry::{Refusal, When};

/// The bounds of a score after its baseline, OpenRLHF's `reward.clip_range`.
pub(super) const CLIP_RANGE: &str = "algorithm.baselined_clip_range";

/// The settings of scores and KL term together, which these estimators read separately.
pub(crate) const REFUSES: &[Refusal] = &[Refusal {
    key: "algorithm.whiten_rewards",
    when: When::On,
    why: "`NAME` reads scores and KL terms apart, and `KEY` is about their sum",
    instead: "leave it out, or choose another algorithm.adv_estimator",
}];

/// Returns the score of each sequence, without a KL term.
pub(super) fn scores(input: &AdvantageInput) -> Vec<f64> {
    sequences(input.offsets).map(|tokens| input.scores[tokens].iter().map(|&s| f64::from(s)).sum()).collect()
}

/// Returns advantages: the scores of a group shaped by `shape`, then as in [`returns`].
pub(super) fn run(input: &AdvantageInput, shape: impl Fn(&[f64]) -> Vec<f64>, gamma: f64, whiten: bool) -> AdvantageOutput {
    let returns = returns(input, &input.by_group(&scores(input), shape), gamma);
    if whiten { input.output(&whitened(&returns, input.mask), &returns) } else { input.output(&returns, &returns) }
}

/// Returns reward-to-go with `gamma` per position, tool tokens included. `shaped`: a value per sequence, which is clipped.
pub(super) fn returns(input: &AdvantageInput, shaped: &[f64], gamma: f64) -> Vec<f64> {
    let [low, high] = input.options.pair("baselined_clip_range");
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
                running += shaped.max(low).min(high);
            }
            returns[t] = running;
        }
    }
    returns
}

/// Returns (value − mean)/sqrt(max(var, 1e-8)), var with n, over the unmasked tokens.
fn whitened(values: &[f64], mask: &[f32]) -> Vec<f64> {
    let kept: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&v, _)| v).collect();
    let mean_value = mean(&kept);
    let variance = mean(&kept.iter().map(|v| (v - mean_value).powi(2)).collect::<Vec<_>>());
    let scale = variance.max(1e-8).sqrt();
    values.iter().map(|v| (v - mean_value) / scale).collect()
}
