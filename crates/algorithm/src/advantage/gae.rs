//! Generalised advantage estimation, the advantage of PPO with a critic.
//!
//! Tool tokens are skipped: the value after a token is the value of the next token that the policy wrote.

use super::estimator::needed;
use super::stats::masked_whiten;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use crate::sequences;
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "gae",
    aliases: &[],
    doc: "Generalised advantage estimation: discounted errors of the critic's values, whitened over the batch.\n\
          Formula: δ_t = r_t + γ·V_{t+1} − V_t; A'_t = δ_t + γλ·A'_{t+1}, t running over trained tokens only, V = 0 after the last; \
          returns R_t = A'_t + V_t; A = (A' − mean)/sqrt(var + 1e-8) over all trained tokens.\n\
          Paper: Schulman et al. 2015, arXiv:1506.02438.\n\
          verl: compute_gae_advantage_return.\n\
          Deviation: verl raises on a batch with fewer than two trained tokens; here their advantage is 0.\n\
          When: PPO: rewards come at every token or turn, or one response to each prompt is all there is, and a critic fits in memory.",
    needs: &[Need::Critic],
    reads: &["algorithm.gamma", "algorithm.lam"],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let values = needed(Need::Critic, input.values);
    let (gamma, lam) = (input.options.number("gamma"), input.options.number("lam"));
    let mut advantages = vec![0.0; input.mask.len()];
    let mut returns = advantages.clone();
    for tokens in sequences(input.offsets) {
        let (mut next_value, mut running) = (0.0, 0.0);
        for t in input.trained(tokens).rev() {
            let value = f64::from(values[t]);
            let error = f64::from(input.rewards[t]) + gamma * next_value - value;
            running = error + gamma * lam * running;
            next_value = value;
            advantages[t] = running;
            returns[t] = running + value;
        }
    }
    input.output(&masked_whiten(&advantages, input.mask), &returns)
}
