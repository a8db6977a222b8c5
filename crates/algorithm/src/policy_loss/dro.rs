//! DRO: the policy gradient with a quadratic pull towards the old policy.

use super::{LossInput, PolicyLoss, PolicyLossOutput};
use burnish_registry::{Refusal, When};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "dro",
    aliases: &[],
    doc: "Policy gradient with a quadratic penalty on leaving the old policy, in place of ratio and clip.\n\
          Formula: L = −(A·log π − ½·dro_beta·(log π − log π_old)²).\n\
          Paper: Richemond et al. 2024, DRO, arXiv:2405.19107.\n\
          verl: compute_policy_loss_dro.\n\
          When: offline or very stale data, where ratios are useless. Needs actor.policy_loss.dro_beta; called without one, β is 0.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &["actor_rollout_ref.actor.policy_loss.dro_beta"],
    refuses: &[Refusal {
        key: "actor_rollout_ref.actor.policy_loss.dro_beta",
        when: When::Off,
        why: "the loss `NAME` needs `KEY`",
        instead: "write KEY=1.0, or another number above 0",
    }],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let beta = x.options.optional("dro_beta").unwrap_or(0.0);
    let difference = x.difference();
    let pull = difference.clone() * difference.clone() * (0.5 * beta);
    let per_token = pull - x.log_prob.clone() * x.advantages.clone();
    PolicyLossOutput { per_token: x.weighted(per_token), metrics: vec![x.mean("actor/ppo_kl", difference.detach().neg())] }
}
