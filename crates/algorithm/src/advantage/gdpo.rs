//! GDPO: each of several rewards is normalised in its group before they are added up.

use super::grpo::relative;
use super::{AdvantageInput, Component, Estimator};
use burnish_registry::Need;
use burnish_registry::{Refusal, When};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "gdpo",
    aliases: &[],
    doc: "GRPO with several rewards, each normalised within its group, then added up and whitened over the batch.\n\
          Formula: A = whiten(Σ_k w_k·(r_ik − mean_k)/(std_k + 1e-6)), std with n−1, whiten(x) = (x − mean x)/sqrt(var x + 1e-8) over \
          all trained tokens; norm_adv_by_std_in_grpo=false: not divided by std; alone in its group: mean 0, std 1.\n\
          Paper: Liu et al. 2026, GDPO, arXiv:2601.05242.\n\
          verl: compute_gdpo_outcome_advantage.\n\
          Deviation: norm_adv_by_std_in_grpo takes effect; verl's trainer does not pass it on, and always divides. A reward function may \
          abstain, which leaves the response out of that reward's mean and std and adds nothing to its sum. verl raises on a batch \
          with fewer than two trained tokens; here their advantage is 0.\n\
          When: several rewards of different size or frequency, such as format and correctness, and no reward should drown the others; \
          a KL term in the reward does not reach it, so use a KL loss.",
    needs: &[Need::Group, Need::Components],
    reads: &["algorithm.norm_adv_by_std_in_grpo"],
    refuses: REFUSES,
    run: |input| {
        let by_std = input.options.is_on("norm_adv_by_std_in_grpo");
        input.spread_whitened(&weighted_sum(input, |group| relative(group, by_std)))
    },
};

/// The settings that change the sum of the rewards, which estimators of named rewards do not read.
pub(crate) const REFUSES: &[Refusal] = &[
    of_the_sum("algorithm.use_kl_in_reward"),
    of_the_sum("algorithm.missing_eos_penalty"),
    of_the_sum("algorithm.stop_properly_penalty_coef"),
    of_the_sum("reward_model.reward_kwargs.overlong_buffer_cfg.enable"),
    of_the_sum("algorithm.length_penalty.num_output_tokens_weight"),
    of_the_sum("algorithm.length_penalty.num_input_tokens_weight"),
    of_the_sum("algorithm.length_penalty.num_turns_weight"),
    of_the_sum("algorithm.normalize_reward"),
    of_the_sum("algorithm.reward_clip_range"),
    of_the_sum("algorithm.whiten_rewards"),
];

const fn of_the_sum(key: &'static str) -> Refusal {
    Refusal {
        key,
        when: When::On,
        why: "`NAME` reads the rewards one by one, and `KEY` is about their sum",
        instead: "leave it out, or choose another algorithm.adv_estimator",
    }
}

/// Returns Σ_k w_k·own(rewards k of the group) for each sequence. Without components, the score is the only reward.
///
/// A response that is the only scored one of its group cannot be compared and adds 0.
pub(crate) fn weighted_sum(input: &AdvantageInput, own: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let score = || Component { name: String::new(), weight: 1.0, values: input.scores().into_iter().map(Some).collect() };
    let score = if input.components.is_empty() { vec![score()] } else { Vec::new() };
    let mut sums = vec![0.0; input.group.len()];
    for Component { weight, values, .. } in input.components.iter().chain(&score) {
        for group in input.groups() {
            let (given, rewards): (Vec<usize>, Vec<f64>) = group.iter().filter_map(|&i| Some((i, values[i]?))).unzip();
            if given.len() > 1 || group.len() == 1 {
                given.iter().zip(own(&rewards)).for_each(|(&i, number)| sums[i] += weight * number);
            }
        }
    }
    sums
}
