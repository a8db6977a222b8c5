//! A*-PO: the score less the optimal value of the prompt, which the reference's responses estimate before the first step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::estimator::needed;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::{Need, Refusal, When};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "a2po",
    aliases: &[],
    doc: "A*-PO's advantage: the score less the optimal value of its prompt. Before the first step, N responses of the initial \
          policy, or of the reference, to each training prompt estimate the value.\n\
          Formula: V*(x) = β₁·ln(mean_i e^{r_i/β₁}), N = a2po.num_value_samples, β₁ = a2po.beta1; A = s − V*(x). With \
          a2po.filter_all_incorrect, prompts without a score above 0 among the N are not drawn.\n\
          Paper: Brantley et al. 2025, Accelerating RL for LLM reasoning with optimal advantage regression, arXiv:2505.20686.\n\
          TRL: A2POTrainer, with actor_rollout_ref.actor.policy_loss.loss_mode=a2po.\n\
          Deviation: values belong to rows and are in the checkpoint. TRL's key is the text of the prompt, so that equal prompts \
          share one value, and a restart estimates again. TRL leaves out prompts whose scores add up to 0, also 1 and −1; here a \
          prompt with negative scores only is left out too.\n\
          When: one response to each prompt is wanted, and sampling all prompts before training is affordable.",
    needs: &[Need::PromptValue],
    reads: &[],
    refuses: &[
        value_is_blind_to("algorithm.whiten_rewards"),
        value_is_blind_to("algorithm.normalize_reward"),
        value_is_blind_to("algorithm.length_penalty.num_output_tokens_weight"),
        value_is_blind_to("algorithm.length_penalty.num_input_tokens_weight"),
        value_is_blind_to("algorithm.length_penalty.num_turns_weight"),
        value_is_blind_to("algorithm.use_kl_in_reward"),
        value_is_blind_to("algorithm.post_processing.path"),
    ],
    run,
};

const fn value_is_blind_to(key: &'static str) -> Refusal {
    Refusal {
        key,
        when: When::On,
        why: "`NAME` compares scores with values of prompts, which `KEY` does not see",
        instead: "leave it out, or choose another algorithm.adv_estimator",
    }
}

/// V* of the training prompts, by the position of the row; serialised into checkpoints, as a list, because keys of JSON are text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, PromptValue)>", into = "Vec<(usize, PromptValue)>")]
pub struct PromptValues(BTreeMap<usize, PromptValue>);

impl From<Vec<(usize, PromptValue)>> for PromptValues {
    fn from(list: Vec<(usize, PromptValue)>) -> Self {
        Self(list.into_iter().collect())
    }
}

impl From<PromptValues> for Vec<(usize, PromptValue)> {
    fn from(values: PromptValues) -> Self {
        values.0.into_iter().collect()
    }
}

/// V* of one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct PromptValue {
    value: f64,
    /// False if no sampled response had a score above 0.
    solved: bool,
}

impl PromptValues {
    /// Adds the prompt of a row. A prompt without scores has the value 0.
    pub fn add(&mut self, row: usize, scores: &[f64], beta: f64) {
        let solved = scores.iter().any(|score| *score > 0.0);
        self.0.insert(row, PromptValue { value: optimal_value(scores, beta), solved });
    }

    /// Returns the value of the prompt of a row, if the row is known.
    pub fn of(&self, row: usize) -> Option<f64> {
        self.0.get(&row).map(|prompt| prompt.value)
    }

    /// Returns true if a sampled response to the prompt had a score above 0.
    pub fn is_solved(&self, row: usize) -> bool {
        self.0.get(&row).is_some_and(|prompt| prompt.solved)
    }

    /// Returns the number of prompts, the number of solved ones, and the mean of all values.
    pub fn summary(&self) -> (usize, usize, f64) {
        let sum: f64 = self.0.values().map(|prompt| prompt.value).sum();
        let solved = self.0.values().filter(|prompt| prompt.solved).count();
        (self.0.len(), solved, sum / self.0.len().max(1) as f64)
    }
}

/// Returns β·ln(mean e^{r/β}), with the largest exponent taken out; 0 without scores.
fn optimal_value(scores: &[f64], beta: f64) -> f64 {
    if scores.is_empty() {
        return 0.0;
    }
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| ((score - largest) / beta).exp()).sum();
    largest + beta * (sum / scores.len() as f64).ln()
}

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let values = needed(Need::PromptValue, input.reward_baselines);
    let advantages: Vec<f64> = input.scores().iter().zip(values).map(|(score, value)| score - f64::from(*value)).collect();
    input.spread(&advantages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_mean_and_the_largest_score() {
        let mut values = PromptValues::default();
        values.add(3, &[1.0, -1.0], 1e9);
        values.add(5, &[1.0, -1.0], 1e-9);
        values.add(7, &[], 0.5);
        values.add(8, &[0.0, -2.0], 0.5);
        let near = |row: usize, value: f64| (values.of(row).unwrap() - value).abs() < 1e-6;
        assert!(near(3, 0.0) && near(5, 1.0) && near(7, 0.0) && values.of(4).is_none(), "{values:?}");
        assert_eq!([3, 5, 7, 8, 4].map(|row| values.is_solved(row)), [true, true, false, false, false]);
        assert_eq!(values.summary().0, 4);
        let text = serde_json::to_string(&values).unwrap();
        assert_eq!(serde_json::from_str::<PromptValues>(&text).unwrap(), values);
    }
}
