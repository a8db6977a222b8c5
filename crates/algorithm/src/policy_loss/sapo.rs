//! SAPO: a smooth gate in place of the clip.

use burn::tensor::activation::sigmoid;

use super::{LossInput, PolicyLoss, PolicyLossOutput};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "sapo",
    aliases: &[],
    doc: "A sigmoid gate on the ratio in place of the clip: the further off-policy a token, the less it counts.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; τ = tau_pos where A > 0, else tau_neg; \
          L = −A·σ(τ(ρ − 1))·4/τ.\n\
          Paper: Gao et al. 2025, SAPO, arXiv:2511.20347.\n\
          verl: compute_policy_loss_sapo.\n\
          TRL: GRPOTrainer with loss_type sapo, which does not hold Δ.\n\
          When: instead of clipping, when many tokens are clipped and their signal is lost.",
    aggregation: Some("seq-mean-token-mean"),
    prepare: None,
    needs: &[],
    reads: &["actor_rollout_ref.actor.tau_pos", "actor_rollout_ref.actor.tau_neg"],
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio();
    let positive = x.advantages.clone().greater_scalar(0.0);
    let tau = x.mask.full_like(x.options.number("tau_neg")).mask_fill(positive, x.options.number("tau_pos"));
    let gate = sigmoid((log_ratio.clone().exp() - 1.0) * tau.clone()) * 4.0 / tau;
    let metrics =
        vec![x.zero("actor/pg_clipfrac"), x.mean("actor/ppo_kl", log_ratio.detach().neg()), x.zero("actor/pg_clipfrac_lower")];
    PolicyLossOutput { per_token: x.weighted(x.advantages.clone().neg() * gate), metrics }
}
