//! The cross-entropy of the label of a step, for process reward models.

use super::{RankingForm, RankingLoss};

pub(super) const LOSS: RankingLoss = RankingLoss {
    name: "cross_entropy",
    doc: "Process reward models: every step has a label, right or wrong, or a probability of being right.\n\
          Formula: L = −Σ_k q_k log p_k at the end of each step, mean over the labelled steps; p = softmax over two labels, or over \
          tokens at a placeholder; q is 1 for the label, or (y, 1 − y) for a probability y.\n\
          Paper: Lightman et al. 2023, Let's verify step by step, arXiv:2305.20050; tokens at placeholders: Wang et al. 2024, \
          Math-Shepherd, arXiv:2312.08935.\n\
          TRL: PRMTrainer (0.29), two labels. OpenRLHF: PRMLoss (0.5.3), tokens at data.placeholder_token.\n\
          Deviation: the mean is over the labelled steps of the whole batch; TRL and OpenRLHF average the means of micro-batches.\n\
          When: rewards for the steps of a solution rather than for its end.",
    reads: &[
        "data.completions_key",
        "data.labels_key",
        "data.step_separator",
        "data.train_on_last_step_only",
        "data.placeholder_token",
        "data.input_key",
        "algorithm.reward_tokens",
    ],
    form: RankingForm::Steps,
};

/// The judgement of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepTarget {
    /// The index of the correct label.
    Class(usize),
    /// The probabilities of the two labels.
    Shares([f64; 2]),
}

/// Returns the cross-entropy of a step's logits, its derivative by each logit, and `true` if the largest logit belongs to the
/// most probable label. The first of equal logits counts as the largest, as in OpenRLHF.
///
/// # Panics
/// If there is no logit for the label.
pub fn step_loss(numbers: &[f32], target: StepTarget) -> (f64, Vec<f64>, bool) {
    let largest = (0..numbers.len()).reduce(|a, b| if numbers[b] > numbers[a] { b } else { a }).unwrap_or(0);
    let max = f64::from(numbers[largest]);
    let sum: f64 = numbers.iter().map(|&x| (f64::from(x) - max).exp()).sum();
    let log_p = |k: usize| f64::from(numbers[k]) - max - sum.ln();
    let (targets, best) = match target {
        StepTarget::Class(class) => (vec![(class, 1.0)], class),
        StepTarget::Shares([first, second]) => (vec![(0, first), (1, second)], usize::from(second > first)),
    };
    let mut d: Vec<f64> = (0..numbers.len()).map(|k| log_p(k).exp()).collect();
    targets.iter().for_each(|(k, q)| d[*k] -= q);
    let loss = targets.iter().filter(|(_, q)| *q != 0.0).map(|(k, q)| -q * log_p(*k)).sum();
    (loss, d, largest == best)
}
