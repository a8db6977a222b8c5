//! A*-PO: a regression of the log-ratio to the reference on the optimal advantage.

use super::{LossInput, MiniBatch, PolicyLoss, PolicyLossOutput, Prepared};
use crate::rounding::settled;
use crate::sequences;
use burnish_registry::{Need, Refusal, When};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "a2po",
    aliases: &[],
    doc: "A*-PO: the scaled log-ratio of a response to the reference is regressed on its advantage.\n\
          Formula: d = Σ_t (log π − log π_ref) over the trained tokens of a response; L = mean over responses of (β₂·d − A)²; β₂ = \
          a2po_beta.\n\
          Paper: Brantley et al. 2025, Accelerating RL for LLM reasoning with optimal advantage regression, arXiv:2505.20686.\n\
          TRL: A2POTrainer.compute_loss, with algorithm.adv_estimator=a2po.\n\
          Deviation: log-probabilities are at the temperature of sampling, as everywhere in this loop; at temperature 1 they are \
          TRL's. The mean is over the responses of a mini-batch, however it is cut.\n\
          When: with algorithm.adv_estimator=a2po and one response to each prompt. Nothing clips the loss: make one update per step, \
          at a lower learning rate than with a clipped loss (recipes/arithmetic/a2po.yaml).",
    // The factor includes the mean over responses.
    aggregation: Some("token-sum"),
    prepare: Some(prepare),
    needs: &[Need::Reference],
    reads: &["actor_rollout_ref.actor.policy_loss.a2po_beta"],
    refuses: &[
        Refusal {
            key: "actor_rollout_ref.actor.policy_loss.off_policy_mask_threshold",
            when: When::On,
            why: "the loss `NAME` is a regression, which learns from responses of either sign",
            instead: "write KEY=null",
        },
        Refusal {
            key: "algorithm.rollout_correction.count_rejected",
            when: When::On,
            why: "the loss `NAME` has no weights that rejected tokens could lose",
            instead: "write KEY=false",
        },
        Refusal {
            key: "algorithm.adv_estimator",
            when: When::Is("gae"),
            why: "the loss `NAME` is of whole responses, and advantages of `gae` are of tokens",
            instead: "write KEY=a2po",
        },
        weighted("token"),
        weighted("sequence"),
    ],
    chosen_by: None,
    run,
};

const fn weighted(by: &'static str) -> Refusal {
    Refusal {
        key: "algorithm.rollout_correction.rollout_is",
        when: When::Is(by),
        why: "the loss `NAME` has no ratio that weights could correct",
        instead: "write KEY=null",
    }
}

/// The factor is the derivative of the loss by log π of the token; the value of the loss is among the metrics.
fn prepare(x: &MiniBatch, _: &mut dyn FnMut() -> f64) -> Prepared {
    let beta = x.options.number("a2po_beta");
    let reference = x.ref_log_prob.expect("the loss a2po needs a reference");
    let mut factor = vec![0.0; x.mask.len()];
    let (mut responses, mut loss, mut implicit) = (0.0_f64, 0.0, 0.0);
    for tokens in sequences(x.offsets) {
        let trained: Vec<usize> = tokens.filter(|&t| x.mask[t] != 0.0).collect();
        if trained.is_empty() {
            continue;
        }
        let sum = |column: &[f32]| trained.iter().map(|&t| f64::from(column[t])).sum::<f64>();
        let log_prob = sum(x.log_prob);
        let difference = log_prob - settled(log_prob, sum(reference), trained.len());
        let residual = beta * difference - sum(x.advantages) / trained.len() as f64;
        trained.iter().for_each(|&t| factor[t] = (2.0 * beta * residual) as f32);
        (responses, loss, implicit) = (responses + 1.0, loss + residual * residual, implicit + beta * difference);
    }
    let responses = responses.max(1.0);
    factor.iter_mut().for_each(|factor| *factor /= responses as f32);
    let metrics = [("actor/pg_loss", loss / responses), ("actor/implicit_reward", implicit / responses)];
    Prepared { factor, metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into() }
}

fn run(x: &LossInput) -> PolicyLossOutput {
    let factor = x.factor.clone().unwrap_or_else(|| x.mask.zeros_like());
    // 0, with the derivative of the loss.
    let per_token = (x.log_prob.clone() - x.log_prob.clone().detach()) * factor;
    PolicyLossOutput { per_token, metrics: vec![x.mean("actor/ppo_kl", x.difference().detach().neg())] }
}
