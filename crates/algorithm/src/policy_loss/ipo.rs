//! IPO of prime-rl: a trust region of probabilities around the policy that generated, the same for every advantage.

use super::dppo_rollout::{TAUS, moved, with_pull};
use super::{LossInput, NO_TOKEN_WEIGHTS, PolicyLoss, PolicyLossOutput};
use burnish_registry::Need;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "ipo",
    aliases: &[],
    doc: "As dppo_rollout, but a token that has moved far in either direction is dropped, for advantages of both signs.\n\
          Formula: Δ and ρ as in dppo_rollout; L = −adv_tau·A·ρ where |π − π_rollout| ≤ ipo_threshold, + kl_tau·Δ² on all.\n\
          Source: prime-rl, trainer/rl/loss.py.\n\
          prime-rl: ipo.\n\
          Deviation: prime-rl does not hold Δ within ±20 in ρ.\n\
          When: as dppo_rollout, where generation and training differ so much that a token may move back by error.",
    aggregation: None,
    prepare: None,
    needs: &[Need::Rollout],
    reads: &["actor_rollout_ref.actor.policy_loss.ipo_threshold", TAUS[0], TAUS[1]],
    refuses: NO_TOKEN_WEIGHTS,
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let inside = moved(x).abs().lower_equal_scalar(x.options.number("ipo_threshold"));
    with_pull(x, inside)
}
