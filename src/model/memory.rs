//! How many numbers a model's passes hold at once, from its shape alone. Every number is an f32, whatever the device.
//!
//! The counts follow the code: what the operations of [`super::ops`] keep for their backward passes, what a block holds while it
//! runs, and one chunk of the head. They leave out what is small: rotations, indices, log-sums of attention.

use super::config::DecoderConfig;
use super::ops::head;

/// Bytes of an f32.
pub const BYTES: usize = 4;

/// The longest batch that a pass sees: so many sequences, padded to so many tokens, of which so many are responses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Widest {
    pub sequences: usize,
    pub tokens: usize,
    pub responses: usize,
}

impl Widest {
    fn rows(&self) -> usize {
        self.sequences * self.tokens
    }

    fn predicted(&self) -> usize {
        self.sequences * self.responses
    }
}

impl DecoderConfig {
    /// Parameters of the network.
    pub fn num_parameters(&self) -> usize {
        let (h, i, q, kv) = (self.hidden_size, self.intermediate_size, self.queries(), self.keys());
        let bias = |has: bool, count: usize| if has { count } else { 0 };
        let attention = 2 * q * h + 2 * kv * h + bias(self.qkv_bias, q + 2 * kv) + bias(self.o_bias, h);
        let mlp = 3 * i * h + bias(self.mlp_bias, 2 * i + h);
        let norms = 2 * h;
        let heads = if self.tie_word_embeddings { 1 } else { 2 };
        heads * self.vocab_size * h + self.num_hidden_layers * (attention + mlp + norms) + h
    }

    fn queries(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    fn keys(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// What a forward pass keeps for its backward pass. Per row and layer: the inputs of two norms and of the projections after
    /// each (4 h), rotated queries and the output of attention (2 q), rotated keys and values (2 kv), gate, up and their product
    /// (3 i), log-sums (one per head). Then the input of the last norm, its output, and the rows that predict a token.
    pub fn activations(&self, widest: Widest) -> usize {
        let (h, i, q, kv) = (self.hidden_size, self.intermediate_size, self.queries(), self.keys());
        let layer = 4 * h + 2 * q + 2 * kv + 3 * i + self.num_attention_heads;
        widest.rows() * (self.num_hidden_layers * layer + 2 * h) + widest.predicted() * h
    }

    /// What a backward pass holds beside [`activations`](Self::activations) and gradients, where it holds most: at the last
    /// block's MLP, or at the head.
    pub fn backward(&self, widest: Widest, on_cpu: bool) -> usize {
        let (h, i) = (self.hidden_size, self.intermediate_size);
        let head = self.vocabulary_chunk(widest, on_cpu) + widest.predicted() * h;
        let mlp = widest.rows() * (2 * i + 5 * h);
        head.max(mlp).max(self.scores(widest, on_cpu))
    }

    /// What a forward pass without gradients holds at its widest point: a block's MLP, or the head.
    pub fn forward(&self, widest: Widest, on_cpu: bool) -> usize {
        let (h, i) = (self.hidden_size, self.intermediate_size);
        let mlp = widest.rows() * (3 * i + 2 * h);
        let head = widest.rows() * h + 2 * widest.predicted() * h + self.vocabulary_chunk(widest, on_cpu);
        mlp.max(head).max(self.scores(widest, on_cpu))
    }

    /// Logits of one chunk of tokens. The composed head has the logarithms, the probabilities and their products beside them.
    pub fn vocabulary_chunk(&self, widest: Widest, on_cpu: bool) -> usize {
        let copies = if on_cpu { 1 } else { 5 };
        copies * widest.predicted().min(head::CHUNK) * self.vocab_size
    }

    /// What the divergence from a reference of this shape adds to the head: the rows that predict a token, and one chunk of
    /// logits. The composed head has their logarithms, the ratios and their products instead.
    pub fn reference_chunk(&self, widest: Widest, on_cpu: bool) -> usize {
        let copies = if on_cpu { 1 } else { 3 };
        copies * widest.predicted().min(head::CHUNK) * self.vocab_size + widest.predicted() * self.hidden_size
    }

    /// Attention scores, which only the composed operation holds: scores, their exponentials, and both gradients.
    fn scores(&self, widest: Widest, on_cpu: bool) -> usize {
        if on_cpu { 0 } else { 4 * widest.rows() * widest.tokens * self.num_attention_heads }
    }

    /// Keys and values of `slots` sequences of up to `capacity` tokens.
    pub fn kv_cache(&self, slots: usize, capacity: usize) -> usize {
        2 * self.num_hidden_layers * slots * capacity * self.keys()
    }

    /// What generation holds beside the cache: the logits of every slot, on the device and twice on the host, and one prefill pass.
    pub fn decoding(&self, slots: usize, prefill: usize) -> usize {
        let widest = Widest { sequences: 1, tokens: prefill, responses: 0 };
        3 * slots * self.vocab_size + self.forward(widest, true) + 2 * self.num_hidden_layers * prefill * self.keys()
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{CausalLm, Init};
    use std::path::Path;

    #[test]
    fn parameters_are_counted_without_loading_them() {
        for folder in ["data/arithmetic/model", "recipes/gsm8k/qwen2_small"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let model = CausalLm::load(&folder, Init::Random { seed: 0 }, &crate::model::device::open(None).unwrap()).unwrap();
            assert_eq!(model.config.num_parameters(), model.num_parameters(), "{}", folder.display());
        }
    }
}
