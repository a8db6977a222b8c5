//! GSPO: one importance ratio per response, the geometric mean of its tokens' ratios, is clipped.

use super::{CLIP_RANGE, LossInput, PolicyLoss, PolicyLossOutput};

/// The upper bound of the log-ratio of a response (verl).
const MAX_LOG_SEQUENCE_RATIO: f64 = 10.0;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "gspo",
    aliases: &[],
    doc: "Clipped surrogate with one ratio per response, the geometric mean of its tokens' ratios.\n\
          Formula: log s = log π − sg(log π) + sg(mean_t(log π − log π_old)), held below 10; \
          L = max(−As, −A·clamp(s, 1−low, 1+high)).\n\
          Paper: Zheng et al. 2025, GSPO, arXiv:2507.18071; LUSPO 2026, arXiv:2602.05261.\n\
          verl: compute_policy_loss_gspo.\n\
          TRL: GRPOTrainer with importance_sampling_level sequence: with loss_type grpo and seq-mean-token-mean it is the paper's, \
          with loss_type luspo and seq-mean-token-sum it is LUSPO.\n\
          OpenRLHF: PolicyLoss of type gspo, which is always seq-mean-token-mean.\n\
          Deviation: TRL and OpenRLHF do not hold s below e^10; OpenRLHF applies its dual_clip here too, and with a rollout \
          correction takes the rollout engine's log-probabilities as old ones, which here is bypass mode. With a top-entropy mask, \
          the gradient comes from the chosen tokens, as their own log π carries it; in TRL all tokens of a response share it.\n\
          When: mixture-of-experts models and long responses, with clip ranges near 3e-4 and seq-mean-token-mean.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &CLIP_RANGE,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let difference = x.difference().detach();
    let carrier = x.log_prob.clone() - x.log_prob.clone().detach();
    let ratio = (carrier + x.sequence_mean(difference.clone())).clamp_max(MAX_LOG_SEQUENCE_RATIO).exp();
    let cost = x.advantages.clone().neg();

    let free = cost.clone() * ratio.clone();
    let clipped = cost * x.clip(ratio);
    let is_clipped = clipped.clone().greater(free.clone());
    let per_token = free.mask_where(is_clipped.clone(), clipped);
    let metrics = vec![
        x.mean("actor/pg_clipfrac", is_clipped.float()),
        x.mean("actor/ppo_kl", difference.neg()),
        x.zero("actor/pg_clipfrac_lower"),
    ];
    PolicyLossOutput { per_token: x.weighted(per_token), metrics }
}
