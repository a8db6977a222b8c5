//! REINFORCE++: discounted reward-to-go, whitened over the trained tokens of the whole batch.
//!
//! Tool tokens are stepped over: what follows them is credited to what came before. (So does verl 0.9; earlier versions
//! restart the return at each tool token.)

use super::stats::masked_whiten;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use crate::algorithm::sequences;

pub const ESTIMATOR: Estimator = Estimator {
    name: "reinforce_plus_plus",
    aliases: &[],
    doc: "Discounted reward-to-go per token, whitened over the batch; needs no group and no critic.\n\
          Formula: G_t = r_t + γ·G_{t+1}, t running over trained tokens only; A = (G − mean)/sqrt(var + 1e-8) over \
          all trained tokens.\n\
          Paper: Hu 2025, REINFORCE++, arXiv:2501.03262.\n\
          verl: compute_reinforce_plus_plus_outcome_advantage.",
    needs: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let mut returns = vec![0.0; input.rewards.len()];
    for tokens in sequences(input.offsets) {
        let mut running = 0.0;
        for t in tokens.rev().filter(|&t| input.mask[t] != 0.0) {
            running = f64::from(input.rewards[t]) + input.options.gamma * running;
            returns[t] = running;
        }
    }
    let whitened = masked_whiten(&returns, input.mask);
    AdvantageOutput {
        advantages: whitened.iter().zip(input.mask).map(|(&a, &m)| a as f32 * m).collect(),
        returns: returns.iter().map(|&g| g as f32).collect(),
    }
}
