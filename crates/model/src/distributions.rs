//! Passes that read whole distributions of some tokens, a few at a time: for losses between models with other vocabularies.

use std::ops::Range;

use burn::tensor::Tensor;

use super::causal_lm::CausalLm;
use super::gradients::Gradients;
use super::ops::{add_rows, head_backward, head_distributions, head_distributions_backward, head_stats};
use super::sequence::Sequence;
use super::token_stats::{HeadInput, Layout, TokenGrads, TokenStats};

/// The most probabilities of one chunk: 32 MB.
const MOST: usize = 8 << 20;

/// A loss of whole distributions and of the probabilities of tokens.
pub trait DistributionLoss {
    /// Gets the distributions [rows, vocabulary] of some of the rows that the pass reads, in order, and the statistics of all
    /// tokens. Returns the derivative of the loss by each probability.
    fn slopes(&mut self, tokens: &TokenStats, rows: Range<usize>, probabilities: &[f32]) -> Vec<f32>;

    /// Returns the derivative of the loss by the statistics of all tokens, after all distributions.
    fn token_grads(&mut self, tokens: &TokenStats) -> TokenGrads;
}

/// The predictions of a micro-batch without gradients: statistics of every response token, and distributions on demand.
pub struct Distributions {
    /// `None` without tokens.
    head: Option<HeadInput>,
    pub tokens: TokenStats,
}

impl Distributions {
    /// Returns the distributions [rows, vocabulary] of some response tokens, counted over all sequences.
    pub fn probabilities(&self, rows: &[usize]) -> Vec<f32> {
        self.head.as_ref().map_or_else(Vec::new, |head| head_distributions(head.view(), rows))
    }
}

/// Cuts 0..n into ranges of `step`; the last one may be shorter.
fn cut(n: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(step).map(move |start| start..(start + step).min(n))
}

impl CausalLm {
    /// Passes over sequences whose response tokens are all sampled, with logits divided by the temperature.
    pub fn distributions(&self, sequences: &[Sequence], temperature: f32) -> Distributions {
        let layout = Layout::for_sequences(sequences);
        if layout.targets.is_empty() {
            return Distributions { head: None, tokens: TokenStats::default() };
        }
        let head = self.predicting(&layout, temperature);
        let tokens = head_stats(head.view(), &layout.targets, None).tokens;
        Distributions { head: Some(head), tokens }
    }

    /// The number of distributions of this model, and of another one, that take 32 MB for each; at least 1.
    pub fn distributions_at_once(&self, other: &Self) -> usize {
        (MOST / self.vocabulary().max(other.vocabulary())).max(1)
    }

    /// Evaluates a loss without gradients on the distributions of some `rows`, response tokens counted over all sequences, with
    /// `at_once` in one chunk. All response tokens are sampled.
    pub fn evaluate_distributions(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        (rows, at_once): (&[usize], usize),
        loss: &mut impl DistributionLoss,
    ) {
        let own = self.distributions(sequences, temperature);
        for part in cut(rows.len(), at_once) {
            let probabilities = own.probabilities(&rows[part.clone()]);
            loss.slopes(&own.tokens, part, &probabilities);
        }
        loss.token_grads(&own.tokens);
    }

    /// Makes one forward and backward pass of a [`trainable`](CausalLm::trainable) model, and adds the gradients of the loss.
    /// The distributions are those of `rows`, as in [`evaluate_distributions`](Self::evaluate_distributions).
    pub fn backward_distributions(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        (rows, at_once): (&[usize], usize),
        gradients: &mut Gradients,
        loss: &mut impl DistributionLoss,
    ) {
        self.backward_through(sequences, temperature, None, gradients, |head, targets, _, mut d_w| {
            let stats = head_stats(head, targets, None);
            let mut d = Tensor::zeros(head.hidden.dims(), &head.hidden.device());
            for part in cut(rows.len(), at_once) {
                let own = &rows[part.clone()];
                let probabilities = head_distributions(head, own);
                let slopes = loss.slopes(&stats.tokens, part, &probabilities);
                let d_own = head_distributions_backward(head, own, &probabilities, &slopes, d_w.as_deref_mut());
                d = add_rows(d, own, d_own);
            }
            let grads = loss.token_grads(&stats.tokens);
            d + head_backward(head, targets, &stats, &grads, None, d_w)
        });
    }
}
