//! GPG: the plain policy gradient.

use super::{LossInput, PolicyLoss, PolicyLossOutput};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "gpg",
    aliases: &[],
    doc: "The plain policy gradient: no ratio, no clip.\n\
          Formula: L = −A·log π.\n\
          Paper: Chu et al. 2025, GPG, arXiv:2504.02546.\n\
          verl: compute_policy_loss_gpg.\n\
          SkyRL: cross_entropy is this loss with an advantage of 1 on every token; on given texts it is trainer sft.\n\
          When: one update per batch, so that the data are on-policy; with the estimator of the same name.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &[],
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    PolicyLossOutput { per_token: x.weighted(x.advantages.clone().neg() * x.log_prob.clone()), metrics: Vec::new() }
}
