//! ReMax: the score of the greedy response to the same prompt is the baseline.

use super::estimator::needed;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;
use burnish_registry::{Refusal, When};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "remax",
    aliases: &[],
    doc: "REINFORCE with the score of the greedy response to the same prompt as baseline.\n\
          Formula: G_t = Σ_{t'≥t} r_t' over trained tokens; A_t = G_t − b, b the greedy response's score; returns G.\n\
          Paper: Li et al. 2023, ReMax, arXiv:2310.10505.\n\
          verl: compute_remax_outcome_advantage.\n\
          When: one response to each prompt is wanted, and one more greedy generation is cheaper than a critic.",
    needs: &[Need::GreedyBaseline],
    reads: &[],
    refuses: &[
        baseline_is_blind_to("algorithm.whiten_rewards"),
        baseline_is_blind_to("algorithm.normalize_reward"),
        baseline_is_blind_to("algorithm.length_penalty.num_output_tokens_weight"),
        baseline_is_blind_to("algorithm.length_penalty.num_input_tokens_weight"),
        baseline_is_blind_to("algorithm.length_penalty.num_turns_weight"),
    ],
    run,
};

const fn baseline_is_blind_to(key: &'static str) -> Refusal {
    Refusal {
        key,
        when: When::On,
        why: "`NAME` compares scores with those of greedy responses, which `KEY` does not see",
        instead: "leave it out, or choose another algorithm.adv_estimator",
    }
}

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let baselines = needed(Need::GreedyBaseline, input.reward_baselines).iter().map(|&b| f64::from(b));
    let baselines = input.per_token(&baselines.collect::<Vec<_>>());
    let returns = input.rewards_to_go(1.0);
    let advantages: Vec<f64> = returns.iter().zip(baselines).map(|(g, b)| g - b).collect();
    input.output(&advantages, &returns)
}
