//! `plain`: the surrogate objective without a clip.

use super::{LossInput, PolicyLoss, PolicyLossOutput};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "plain",
    aliases: &[],
    doc: "The surrogate objective without a clip.\n\
          Formula: L = −Aρ.\n\
          Paper: Schulman et al. 2017, PPO, arXiv:1707.06347.\n\
          verl: compute_policy_loss_vanilla without its clips.\n\
          When: one update per batch.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &[],
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio();
    let metrics = vec![x.mean("actor/ppo_kl", log_ratio.clone().detach().neg())];
    PolicyLossOutput { per_token: x.weighted(x.advantages.clone().neg() * log_ratio.exp()), metrics }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::options::Options;
    use crate::policy_loss::LossOptions;

    #[test]
    fn the_loss_of_an_unchanged_policy_is_minus_the_advantage() {
        let device = Device::default();
        let column = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
        let input = LossInput {
            log_prob: column([-1.0, -2.0]),
            old_log_prob: column([-1.0, -2.0]),
            advantages: column([0.5, -3.0]),
            mask: column([1.0, 1.0]),
            offsets: &[0, 2],
            rollout_is_weights: None,
            factor: None,
            options: &LossOptions::new(Options::default()),
        };
        let loss = (LOSS.run)(&input).per_token.into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(loss, [-0.5, 3.0]);
    }
}
