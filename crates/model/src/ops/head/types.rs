//! Inputs and outputs of the head.

use burn::tensor::Tensor;

use super::super::simd::{self, LogSum};
use super::divergence::Divergence;
use super::sparse::SparseMeasure;
use super::top_k::{TopK, TopKStats};

/// Hidden states [n, h] and the matrix [v, h] of the head, in one dtype. With bf16, only the matmul is computed in bf16; logits
/// and everything derived from them are f32.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub hidden: &'a Tensor<2>,
    pub w: &'a Tensor<2>,
    pub softcap: Option<Softcap>,
}

/// Softly capped logits: cap·tanh(h·wᵀ / cap) / temperature instead of h·wᵀ (Gemma 2). The cap is applied before the temperature.
/// Without a cap, the hidden states are divided by the temperature instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softcap {
    pub cap: f32,
    pub temperature: f32,
}

impl Softcap {
    /// Turns h·wᵀ into logits, in place.
    pub(super) fn apply(self, x: &mut [f32]) {
        simd::softcap(x, self.cap);
        simd::scale(1.0 / self.temperature, x);
    }

    /// Turns gradients of logits into gradients of h·wᵀ, in place.
    pub(super) fn backward(self, logits: &[f32], d: &mut [f32]) {
        for (d, x) in d.iter_mut().zip(logits) {
            let tanh = x * self.temperature / self.cap;
            *d *= (1.0 - tanh * tanh) / self.temperature;
        }
    }
}

/// The target of a comparison with the policy's distribution, at each token.
#[derive(Clone, Copy, Debug)]
pub enum Compared<'a> {
    /// The distribution of a second model, by one of the divergences. Its hidden states may have another width.
    Head(Head<'a>, Divergence),
    /// Some tokens of a teacher, by one of the measures on them.
    TopK { teacher: &'a TopK, measure: SparseMeasure },
    /// The uniform distribution u over the vocabulary of V tokens, by the cross-entropy −Σ u·log π = −Σ log π / V.
    Uniform,
}

/// Statistics of π(·|before) = softmax(logits / temperature) per response token of a micro-batch, sequences one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenStats {
    /// log π(token)
    pub log_prob: Vec<f32>,
    /// True if no token has a higher probability.
    pub is_top1: Vec<bool>,
    /// −Σ π log π, in nats
    pub entropy: Vec<f32>,
    /// Σ π², the probability that two samples agree
    pub sum_pi_squared: Vec<f32>,
    /// The divergence between π and the comparison, in nats, both at the same temperature; empty without a comparison. With a
    /// reference this is KL(π ‖ π_ref) = Σ π (log π − log π_ref) over the vocabulary.
    pub full_kl: Vec<f32>,
    /// Agreement of π with a teacher's top-k tokens; empty columns without a teacher.
    pub top_k: TopKStats,
}

/// d loss / d [`TokenStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenGrads {
    pub log_prob: Vec<f32>,
    pub entropy: Vec<f32>,
    /// The gradient of the divergence; empty if the loss does not read it. No comparison is then needed.
    pub full_kl: Vec<f32>,
}

/// The statistics of a batch of tokens, for the caller and for [`head_backward`](super::head_backward).
#[derive(Clone, Debug, Default)]
pub struct HeadStats {
    pub tokens: TokenStats,
    /// The log-sums of the policy's logits; `reference` has the log-sums of the second model. Both are empty in the composed
    /// body.
    pub(super) log_sums: Vec<LogSum>,
    pub(super) reference: Vec<LogSum>,
    /// A part of the divergence that its gradient needs, see [`Divergence`]; empty in the composed body.
    pub(super) part: Vec<f32>,
    /// −dD/d log p_k of the teacher's tokens, [n, k]; empty without a teacher.
    pub(super) pull: Vec<f32>,
    /// log p_k of the teacher's tokens, [n, k]; empty without a teacher.
    pub(super) found: Vec<f32>,
}
