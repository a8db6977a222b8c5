//! REINFORCE++: discounted reward-to-go, whitened over the trained tokens of the whole batch.
//!
//! Tool tokens are skipped: rewards after them are credited to the tokens before them, as in verl 0.9. (Earlier versions restart
//! the return at each tool token.)

use super::stats::masked_whiten;
use super::{AdvantageInput, AdvantageOutput, Estimator};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "reinforce_plus_plus",
    aliases: &[],
    doc: "Discounted reward-to-go per token, whitened over the batch; needs no group and no critic.\n\
          Formula: G_t = r_t + γ·G_{t+1}, t running over trained tokens only; A = (G − mean)/sqrt(var + 1e-8) over \
          all trained tokens.\n\
          Paper: Hu 2025, REINFORCE++, arXiv:2501.03262.\n\
          verl: compute_reinforce_plus_plus_outcome_advantage.\n\
          Deviation: verl raises on a batch with fewer than two trained tokens; here their advantage is 0.\n\
          When: one response to each prompt, many different prompts in a batch, and no critic.",
    needs: &[],
    reads: &["algorithm.gamma"],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let returns = input.rewards_to_go(input.options.number("gamma"));
    input.output(&masked_whiten(&returns, input.mask), &returns)
}
