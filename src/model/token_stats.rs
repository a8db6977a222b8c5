//! The seam between model and algorithm: a micro-batch becomes a few numbers per response token (its log-probability, the
//! entropy, the divergence from a reference), and gradients with respect to those numbers flow back into the parameters.
//!
//! 1. trunk forward with autodiff → hidden states; 2. head in chunks, outside the graph → [`TokenStats`];
//! 3. the caller's loss gives d loss / d stats; 4. head backward in the same chunks → d hidden and d head;
//! 5. trunk backward from d hidden. No [batch, seq, vocabulary] tensor exists, and losses never see a model.

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor};

use super::causal_lm::{CausalLm, index};
use super::gradients::Gradients;
use super::ops::{Head, head_backward, head_stats};

pub use super::ops::head::{TokenGrads, TokenStats};

/// A prompt and its response; statistics are of the response tokens, each predicted from all tokens before it.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    /// At least one token.
    pub prompt: &'a [u32],
    pub response: &'a [u32],
}

impl Sequence<'_> {
    pub fn len(&self) -> usize {
        self.prompt.len() + self.response.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A micro-batch laid out for the device.
struct Layout {
    /// Token ids, padded on the right to [batch, seq].
    ids: Vec<u32>,
    batch: usize,
    seq: usize,
    /// Row in [batch · seq] whose hidden state predicts each response token.
    rows: Vec<usize>,
    targets: Vec<u32>,
}

impl Layout {
    fn of(sequences: &[Sequence]) -> Self {
        let seq = sequences.iter().map(|s| s.len()).max().unwrap_or(0);
        let mut layout =
            Self { ids: vec![0; sequences.len() * seq], batch: sequences.len(), seq, rows: Vec::new(), targets: Vec::new() };
        for (i, s) in sequences.iter().enumerate() {
            assert!(!s.prompt.is_empty(), "a sequence needs at least one prompt token");
            let row = &mut layout.ids[i * seq..];
            row[..s.prompt.len()].copy_from_slice(s.prompt);
            row[s.prompt.len()..s.len()].copy_from_slice(s.response);
            layout.rows.extend((s.prompt.len() - 1..s.len() - 1).map(|p| i * seq + p));
            layout.targets.extend_from_slice(s.response);
        }
        layout
    }

    /// The rows that predict a response token, as a tensor.
    fn predicting(&self, device: &Device) -> Tensor<1, Int> {
        index(self.rows.iter().copied(), device)
    }
}

impl CausalLm {
    /// Statistics of every response token, without gradients. A reference adds the divergence from it.
    ///
    /// # Panics
    /// If the reference has another vocabulary; its hidden size may differ. It must be on the same device.
    pub fn token_stats(&self, sequences: &[Sequence], temperature: f32, reference: Option<&CausalLm>) -> TokenStats {
        let layout = Layout::of(sequences);
        if layout.targets.is_empty() {
            return TokenStats::default();
        }
        let reference = reference.map(|reference| reference.predicting(&layout, temperature));
        let (hidden, w) = self.predicting(&layout, temperature);
        head_stats(Head { hidden: &hidden, w: &w }, &layout.targets, reference.as_ref().map(|(hidden, w)| Head { hidden, w }))
    }

    /// One forward and backward pass of a [`trainable`](CausalLm::trainable) model: `loss` maps the statistics to their
    /// gradients, and the parameters' gradients are added to `gradients`. A reference adds the divergence from it to the
    /// statistics, at the cost of a forward pass; it gets no gradients.
    ///
    /// # Panics
    /// As [`token_stats`](Self::token_stats), and if `loss` gives a gradient of the divergence without a reference.
    pub fn backward(
        &self,
        sequences: &[Sequence],
        temperature: f32,
        reference: Option<&CausalLm>,
        gradients: &mut Gradients,
        loss: impl FnOnce(&TokenStats) -> TokenGrads,
    ) {
        let layout = Layout::of(sequences);
        if layout.targets.is_empty() {
            loss(&TokenStats::default());
            return;
        }
        // Before the policy's pass, so that what this one holds meanwhile is gone when the policy's activations come.
        let reference = reference.map(|reference| reference.predicting(&layout, temperature));
        let reference = reference.as_ref().map(|(hidden, w)| Head { hidden, w });
        // The embedded tokens are a leaf of their own: a graph through the lookup would make a [vocab, h] tensor per pass.
        let embedded = Tensor::from_inner(self.embed(&layout.ids)).require_grad();
        let hidden = self.hidden(embedded.clone(), layout.batch, layout.seq, &mut |_, _, _| {});
        let rows = layout.predicting(&self.device);
        let predicting = hidden.clone().inner().select(0, rows.clone()) / temperature;
        let w = self.net.head().val().inner();
        let head = Head { hidden: &predicting, w: &w };
        let grads = loss(&head_stats(head, &layout.targets, reference));

        let head_name = if self.net.lm_head.is_some() { "lm_head.weight" } else { EMBEDDING };
        let mut d_head = gradients.take(head_name, w.dims(), &self.device);
        let d_rows = head_backward(head, &layout.targets, &grads, reference, &mut d_head) / temperature;
        gradients.add(head_name, d_head);

        let d_hidden = Tensor::zeros(hidden.dims(), &self.device).select_assign(0, rows, d_rows, IndexingUpdateOp::Add);
        let mut graph = (hidden * Tensor::from_inner(d_hidden)).sum().backward();
        let d_embedded = embedded.grad_remove(&mut graph).expect("the embedded tokens are a leaf of this graph");
        gradients.add_backward(&self.net, &mut graph);

        let ids = index(layout.ids.into_iter().map(|id| id as usize), &self.device);
        let shape = self.net.model.embed_tokens.weight.val().dims();
        let d_table = gradients.take(EMBEDDING, shape, &self.device);
        gradients.add(EMBEDDING, d_table.select_assign(0, ids, d_embedded, IndexingUpdateOp::Add));
    }

    /// Outside any graph: the hidden states that predict the response tokens, over the temperature, and the head's matrix.
    fn predicting(&self, layout: &Layout, temperature: f32) -> (Tensor<2>, Tensor<2>) {
        let model = self.frozen();
        let hidden = model.hidden(model.embed(&layout.ids), layout.batch, layout.seq, &mut |_, _, _| {});
        let rows = hidden.select(0, layout.predicting(&self.device));
        (rows / temperature, model.net.head().val())
    }
}

const EMBEDDING: &str = "model.embed_tokens.weight";
