//! The statistics of one response that losses read, and the gradient back to its tokens.

use serde::{Deserialize, Serialize};

/// An answer as the losses see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Σ log π over the tokens of the answer; those that only the longer answer of a pair has count `ld_alpha`.
    pub log_prob: f64,
    /// The same sum under the reference; 0 without one.
    pub reference: f64,
    /// The number of tokens.
    pub tokens: usize,
    /// Σ log π over the tokens, each counted once.
    pub plain: f64,
    /// The mean of log π − log Σ_v π(v)² over the tokens (WPO); 0 if no loss reads it.
    pub typicality: f64,
    /// Σ log π over the tokens of the prompt but the first, and their number; 0 if no loss reads them.
    pub prompt: f64,
    pub prompt_tokens: usize,
}

impl Answer {
    /// Creates the numbers of an answer with these log-probabilities. `shared` tokens count once, the rest `ld_alpha` times;
    /// `sum_pi_squared` is empty or has a number for each token.
    pub fn new(log_probs: &[f32], sum_pi_squared: &[f32], shared: usize, ld_alpha: f64) -> Self {
        let sum = |tokens: &[f32]| tokens.iter().map(|&lp| f64::from(lp)).sum::<f64>();
        let (plain, count) = (sum(log_probs), log_probs.len().max(1) as f64);
        let sharpness: f64 = sum_pi_squared.iter().map(|&s| f64::from(s).ln()).sum();
        Self {
            log_prob: length_desensitised(log_probs, shared, ld_alpha),
            tokens: log_probs.len(),
            plain,
            typicality: if sum_pi_squared.is_empty() { 0.0 } else { (plain - sharpness) / count },
            ..Self::default()
        }
    }

    /// Returns the same answer with the log-probabilities of its prompt, the first token left out.
    pub fn with_prompt(self, log_probs: &[f32]) -> Self {
        Self { prompt: log_probs.iter().map(|&lp| f64::from(lp)).sum(), prompt_tokens: log_probs.len(), ..self }
    }

    /// Returns the same answer with its sum under the reference.
    pub fn with_reference(self, reference: f64) -> Self {
        Self { reference, ..self }
    }
}

/// A chosen and a rejected answer to one prompt.
pub type AnsweredPair = [Answer; 2];

/// Σ of the first `shared` numbers + `ld_alpha`·Σ of the rest.
pub fn length_desensitised(log_probs: &[f32], shared: usize, ld_alpha: f64) -> f64 {
    let (first, rest) = log_probs.split_at(shared.min(log_probs.len()));
    let sum = |tokens: &[f32]| tokens.iter().map(|&lp| f64::from(lp)).sum::<f64>();
    sum(first) + if rest.is_empty() { 0.0 } else { ld_alpha * sum(rest) }
}

/// d loss / d the sums of an [`Answer`], from which the gradient of each token follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerGrads {
    /// By [`Answer::log_prob`].
    pub log_prob: f64,
    /// By [`Answer::plain`].
    pub plain: f64,
    /// By [`Answer::prompt`].
    pub prompt: f64,
}

impl AnswerGrads {
    /// Returns d loss / d log π of token `t` of the answer. The first `shared` tokens count once, the rest `ld_alpha` times.
    pub fn token(&self, t: usize, shared: usize, ld_alpha: f64) -> f64 {
        self.plain + self.log_prob * if t < shared { 1.0 } else { ld_alpha }
    }
}
