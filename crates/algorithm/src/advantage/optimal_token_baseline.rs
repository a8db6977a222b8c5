//! Optimal token baseline: a baseline for each step, in which responses are weighted by the size of their gradient so far.

use super::estimator::needed;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use crate::sequences;
use burnish_registry::Need;

/// Added to the sum of weights.
const EPSILON: f64 = 1e-8;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "optimal_token_baseline",
    aliases: &[],
    doc: "REINFORCE with the baseline of least variance for each step of the group.\n\
          Formula: G_t = Σ_{t'≥t} r_t'; w_t = (1 − 2π_t + Σπ²)·ρ_t²; W_t = Σ_{t'≤t} w_t', all over trained tokens; \
          B_t = Σ_i G_t·W_t/(Σ_i W_t + 1e-8) over the responses with a trained token at position t; A_t = G_t − B_t, returns G; \
          ρ the weights of the rollout correction, 1 without; alone in its group, or in the tail of the one longest response: B = 0, \
          the tail being the positions from the length of the second longest on.\n\
          Source: The Optimal Token Baseline, https://yingru.notion.site/The-Optimal-Token-Baseline-399211a558b782cfa936014c0d42dfb8.\n\
          verl: compute_optimal_token_baseline_advantage.\n\
          When: long responses in one turn, where a single baseline for a whole response leaves too much variance.",
    needs: &[Need::Group, Need::SumPiSquared],
    reads: &[],
    refuses: &[],
    run: |input| run(input, |position, _| position),
};

/// Runs the estimator. `step` returns the index of a token's step, given its position in the response and the number of trained
/// tokens before it; tokens with the same step share a baseline.
pub(super) fn run(input: &AdvantageInput, step: fn(usize, usize) -> usize) -> AdvantageOutput {
    let returns = input.rewards_to_go(1.0);
    let energy = energy(input);
    let mut advantages = returns.clone();
    // The trained tokens of each response, with their steps.
    let steps: Vec<Vec<(usize, usize)>> = sequences(input.offsets)
        .map(|tokens| {
            let start = tokens.start;
            input.trained(tokens).enumerate().map(|(rank, t)| (t, step(t - start, rank))).collect()
        })
        .collect();
    for group in input.groups().iter().filter(|group| group.len() > 1) {
        let tokens = || group.iter().flat_map(|&i| &steps[i]).copied();
        let mut sums = vec![(0.0, EPSILON); tokens().map(|(_, s)| s + 1).max().unwrap_or(0)];
        for (t, s) in tokens() {
            sums[s].0 += returns[t] * energy[t];
            sums[s].1 += energy[t];
        }
        let mut lengths: Vec<usize> = group.iter().map(|&i| steps[i].len()).collect();
        lengths.sort_unstable();
        let second = lengths[lengths.len() - 2];
        for own in group.iter().map(|&i| &steps[i]) {
            // Only the one longest response is longer than the second longest.
            let tail = if own.len() > second { second } else { usize::MAX };
            for &(t, s) in own.iter().filter(|&&(_, s)| s < tail) {
                advantages[t] -= sums[s].0 / sums[s].1;
            }
        }
    }
    input.output(&advantages, &returns)
}

/// Returns W of each trained token: the squared norms of the gradients of the logits, accumulated from the first token on.
fn energy(input: &AdvantageInput) -> Vec<f64> {
    let old_log_prob = needed(Need::SumPiSquared, input.old_log_prob);
    let sum_pi_squared = needed(Need::SumPiSquared, input.sum_pi_squared);
    let mut energy = vec![0.0; input.mask.len()];
    for tokens in sequences(input.offsets) {
        let mut running = 0.0;
        for t in input.trained(tokens) {
            let weight = input.rollout_is_weights.map_or(1.0, |weights| f64::from(weights[t]));
            running += (1.0 - 2.0 * f64::from(old_log_prob[t]).exp() + f64::from(sum_pi_squared[t])) * weight * weight;
            energy[t] = running;
        }
    }
    energy
}
