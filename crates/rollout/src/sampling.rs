//! Sampling parameters, and the distribution that reported log-probabilities refer to.

use std::ops::RangeInclusive;

/// Sampling parameters, with vLLM's meaning and order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Temperature; 0 is greedy.
    pub temperature: f32,
    /// Keeps the k most probable tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the smallest set of most probable tokens whose probability reaches p; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this many times as probable as the most probable one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the response; 1 changes nothing. Must be
    /// in [`REPETITION`](Self::REPETITION).
    pub repetition_penalty: f32,
    /// Subtracted once from the logits of tokens in the response; 0 changes nothing.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens in the response, once per occurrence; 0 changes nothing.
    pub frequency_penalty: f32,
    /// Largest length of a response, in tokens.
    pub max_tokens: usize,
    /// Number of tokens before which neither stop tokens nor stop strings end a response.
    pub min_tokens: usize,
    /// Distribution of the log-probabilities of generation.
    pub logprobs: Logprobs,
}

/// Distribution of the log-probabilities of generation (`rollout.logprobs_mode`, in vLLM's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logprobs {
    /// The distribution that tokens are drawn from: after penalties, temperature, min-p, top-k and top-p, over the kept tokens.
    /// For greedy sampling: at temperature 1, over all allowed tokens.
    #[default]
    Processed,
    /// The model's own distribution, before any of these changes: at temperature 1.
    Raw,
}

impl Sampling {
    /// Repetition penalties with which f32 can still distinguish a logit from its neighbours.
    pub const REPETITION: RangeInclusive<f64> = 1e-3..=1e3;

    /// Samples one token from the model's own distribution.
    pub const PLAIN: Self = Self {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        max_tokens: 1,
        min_tokens: 0,
        logprobs: Logprobs::Processed,
    };

    /// Returns true if there is a penalty for tokens that occurred before.
    pub fn penalises(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    /// Returns the factor of the logits: 1 / temperature, and 1 for greedy sampling. It is never 0 or infinite, because the
    /// scaled logits of −∞ and of the most probable token would be NaN.
    pub fn scale(&self) -> f32 {
        if self.temperature <= 0.0 { 1.0 } else { (1.0 / self.temperature).clamp(f32::MIN_POSITIVE, f32::MAX) }
    }

    pub fn keeps_all(&self, vocab: usize) -> bool {
        (self.top_k == 0 || self.top_k >= vocab) && self.top_p >= 1.0 && self.min_p <= 0.0
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::PLAIN
    }
}
