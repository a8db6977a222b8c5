//! What goes into the head and what comes out of it.

use burn::tensor::Tensor;

use super::super::simd::{self, LogSum};
use super::divergence::Divergence;
use super::top_k::{TopK, TopKStats};

/// Hidden states [n, h] and the matrix [v, h] that makes logits of them, in one dtype. If it is bf16, only the products are
/// computed in it; logits and everything derived from them are f32.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub hidden: &'a Tensor<2>,
    pub w: &'a Tensor<2>,
    pub softcap: Option<Softcap>,
}

/// Softly capped logits: cap·tanh(h·wᵀ / cap) / temperature instead of h·wᵀ (Gemma 2). The cap comes before the temperature,
/// which elsewhere divides the hidden states.
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

/// What the distribution of the policy is compared with at each token.
#[derive(Clone, Copy, Debug)]
pub enum Compared<'a> {
    /// The distribution of a second model, by one of the divergences. Its hidden states may have another width.
    Head(Head<'a>, Divergence),
    /// The most likely tokens of a teacher: Σ_k q_k·(log q_k − log p_k). Log-probabilities of both below `least` are raised to it.
    TopK { teacher: &'a TopK, least: Option<f32> },
    /// The uniform distribution u over the vocabulary of V tokens, by the cross-entropy −Σ u·log π = −Σ log π / V.
    Uniform,
}

/// Statistics of π(·|before) = softmax(logits / temperature) per response token of a micro-batch, sequences one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenStats {
    /// log π(token)
    pub log_prob: Vec<f32>,
    /// True if no token is more likely.
    pub is_top1: Vec<bool>,
    /// −Σ π log π, in nats
    pub entropy: Vec<f32>,
    /// Σ π², the chance that two draws agree
    pub sum_pi_squared: Vec<f32>,
    /// The divergence between π and what it is compared with, in nats, both at the same temperature; empty without such. With a
    /// reference this is KL(π ‖ π_ref) = Σ π (log π − log π_ref) over the vocabulary.
    pub full_kl: Vec<f32>,
    /// How π and the most likely tokens of a teacher agree; empty columns without such.
    pub top_k: TopKStats,
}

/// d loss / d [`TokenStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenGrads {
    pub log_prob: Vec<f32>,
    pub entropy: Vec<f32>,
    /// The gradient of the divergence; empty where the loss does not read it, and what π is compared with is then not needed.
    pub full_kl: Vec<f32>,
}

/// The statistics of a batch of tokens, for the caller and for [`head_backward`](super::head_backward).
#[derive(Clone, Debug, Default)]
pub struct HeadStats {
    pub tokens: TokenStats,
    /// The log-sums of the policy's logits, and of the second model's; empty in the composed body.
    pub(super) log_sums: Vec<LogSum>,
    pub(super) reference: Vec<LogSum>,
    /// A part of the divergence that its gradient needs, see [`Divergence`]; empty in the composed body.
    pub(super) part: Vec<f32>,
    /// What pulls at the k tokens of a teacher, [n, k]: q_k, or 0 where log p_k was raised; empty without such.
    pub(super) pull: Vec<f32>,
}
