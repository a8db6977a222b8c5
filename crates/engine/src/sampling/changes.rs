//! Changes to the logits of a row before the temperature: forbidden tokens, biases and penalties.

use burnish_rollout::Sampling;

/// A token under a penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenalizedToken {
    pub token: u32,
    /// Number of times in the response; 0 if only the prompt contains the token.
    pub count: u32,
}

/// Tokens of a prompt and its response so far, as far as penalties need them.
#[derive(Clone, Debug, Default)]
pub struct TokenHistory {
    counts: bool,
    /// Ascending, each token once.
    penalized: Vec<PenalizedToken>,
}

impl TokenHistory {
    /// Returns the history before the first token of a response. Only the repetition penalty reads the prompt; without a penalty
    /// nothing is stored.
    pub fn new(prompt: &[u32], sampling: &Sampling) -> Self {
        let mut tokens = if sampling.repetition_penalty == 1.0 { Vec::new() } else { prompt.to_vec() };
        tokens.sort_unstable();
        tokens.dedup();
        Self {
            counts: sampling.penalises(),
            penalized: tokens.into_iter().map(|token| PenalizedToken { token, count: 0 }).collect(),
        }
    }

    /// Adds a token of the response.
    pub fn add(&mut self, token: u32) {
        if !self.counts {
            return;
        }
        match self.penalized.binary_search_by_key(&token, |penalized| penalized.token) {
            Ok(at) => self.penalized[at].count += 1,
            Err(at) => self.penalized.insert(at, PenalizedToken { token, count: 1 }),
        }
    }

    /// Returns the tokens under a penalty, each once.
    pub fn penalized(&self) -> &[PenalizedToken] {
        &self.penalized
    }
}

/// Changes to the logits of single tokens.
#[derive(Clone, Copy, Default)]
pub struct LogitChanges<'a> {
    /// The only tokens that may be drawn, each once; `None` allows all.
    pub allowed: Option<&'a [u32]>,
    /// Tokens that may not be drawn.
    pub forbidden: &'a [u32],
    /// Tokens and the values that are added to their logits.
    pub biases: &'a [(u32, f32)],
    /// Tokens under penalties, each once.
    pub penalized: &'a [PenalizedToken],
}

impl LogitChanges<'_> {
    /// Returns true if some logit changes.
    pub(super) fn change(&self, sampling: &Sampling) -> bool {
        let penalised = sampling.penalises() && !self.penalized.is_empty();
        penalised || self.allowed.is_some() || !self.forbidden.is_empty() || !self.biases.is_empty()
    }

    /// Applies the changes in vLLM's order. A penalty leaves a logit of −∞ unchanged.
    pub(super) fn apply(&self, logits: &mut [f32], sampling: &Sampling) {
        if let Some(allowed) = self.allowed {
            let allowed_logits: Vec<f32> = allowed.iter().map(|&token| logits[token as usize]).collect();
            logits.fill(f32::NEG_INFINITY);
            allowed.iter().zip(allowed_logits).for_each(|(&token, logit)| logits[token as usize] = logit);
        }
        for &token in self.forbidden {
            logits[token as usize] = f32::NEG_INFINITY;
        }
        for &(token, bias) in self.biases {
            logits[token as usize] += bias;
        }
        if sampling.penalises() {
            self.penalized
                .iter()
                .for_each(|penalized| penalise(&mut logits[penalized.token as usize], penalized.count, sampling));
        }
    }

    /// Appends a change for each token that is forbidden, biased or penalised, once, in the form that
    /// [`sample_on_gpu`](burnish_model::ops::sample_on_gpu) reads.
    #[cfg(feature = "gpu")]
    pub(super) fn list(&self, sampling: &Sampling, list: &mut Vec<f32>) {
        use burnish_model::ops::sample_on_gpu::FORBIDDEN;

        let forbidden = self.forbidden.iter().map(|&token| (token, FORBIDDEN, -1.0));
        let biased = self.biases.iter().map(|&(token, bias)| (token, bias, -1.0));
        let penalized = if sampling.penalises() { self.penalized } else { &[] };
        let penalized = penalized.iter().map(|penalized| (penalized.token, 0.0, penalized.count as f32));
        let mut all: Vec<(u32, f32, f32)> = forbidden.chain(biased).chain(penalized).collect();
        all.sort_by_key(|change| change.0);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            let added: f32 = same.iter().map(|change| change.1).sum();
            let count = same.iter().fold(-1.0, |count: f32, change| count.max(change.2));
            list.extend([same[0].0 as f32, added.max(FORBIDDEN), count, 0.0]);
        }
    }
}

fn penalise(logit: &mut f32, count: u32, sampling: &Sampling) {
    let repetition = sampling.repetition_penalty;
    *logit = if *logit > 0.0 { *logit / repetition } else { *logit * repetition };
    *logit -= sampling.frequency_penalty * count as f32;
    if count > 0 {
        *logit -= sampling.presence_penalty;
    }
}
