//! The work of the passes of a model, counted from its shape.

use super::budgets::*;
use super::tokens::{Generation, Tokens};
use super::work::Work;
use burnish_model::DecoderConfig;
use burnish_model::config::HeadKind;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::memory::{ElementCount, LargestBatch};
use burnish_model::ops::attention::QUERIES;
use burnish_model::ops::head::GPU_CHUNK;
use burnish_optim::{Optimizer, Parameter};

/// Bytes of an f32: of parameters, gradients, logits, scores and what layers keep.
const WIDE: f64 = 4.0;
/// Bytes of a parameter that an optimizer without state reads and writes: its gradient once for the norm of all, and once beside the
/// parameter, which is written. AdamW's two moments, read and written, make 28 of them beside the norm.
const UPDATED: f64 = 4.0 * WIDE;
/// Bytes of a parameter's gradient where a micro-batch is not alone: read, with the sum, which is written.
const SUMMED: f64 = 3.0 * WIDE;

/// A model, as its work is counted. `width` is always the bytes of an operand of a product: 2 in bfloat16, 4 in f32.
pub struct Costs {
    layers: f64,
    /// Heads · the size of a head: products of a query and a key, and of a score and a value.
    queries: f64,
    heads: f64,
    /// Numbers of keys and values of a token in all layers.
    cached: f64,
    windows: Vec<Option<usize>>,
    /// Numbers of the matrices of all layers.
    matrices: f64,
    hidden: f64,
    /// Numbers that the head returns for a token: the vocabulary's, or the labels'.
    outputs: f64,
    /// Numbers that the layers keep of a row.
    kept: f64,
    /// Matrices with an adapter, and the numbers of all adapters; 0 without.
    adapted: (f64, f64),
    /// Numbers that are trained.
    trained: f64,
    shapes: Vec<(&'static str, Vec<usize>, ElementCount)>,
    checkpointing: bool,
}

impl Costs {
    pub fn of(decoder: &DecoderConfig, adapter: Option<&PeftAdapter>, checkpointing: bool) -> Self {
        let size = |shape: &[usize]| shape.iter().map(|size| *size as f64).product::<f64>();
        let all = decoder.shapes();
        let of_layers = all.iter().filter(|(name, ..)| name.starts_with("model.layers."));
        let row = LargestBatch { rows: 1, predicted: 0, longest: 1 };
        Self {
            layers: decoder.num_hidden_layers as f64,
            queries: (decoder.num_attention_heads * decoder.head_dim) as f64,
            heads: decoder.num_attention_heads as f64,
            cached: 2.0 * (decoder.num_hidden_layers * decoder.num_key_value_heads * decoder.head_dim) as f64,
            windows: decoder.windows.clone(),
            matrices: of_layers.map(|(_, shape, count)| size(shape) * *count as f64).sum(),
            hidden: decoder.hidden_size as f64,
            outputs: match decoder.head {
                HeadKind::Language => decoder.vocab_size as f64,
                HeadKind::Classifier { labels, .. } => labels as f64,
            },
            kept: decoder.activations(row, false) as f64,
            adapted: adapter.map_or((0.0, 0.0), |adapter| (adapter.factors.len() as f64, adapter.num_parameters() as f64)),
            trained: adapter.map_or(decoder.num_parameters(), PeftAdapter::num_parameters) as f64,
            shapes: adapter.map_or(all, PeftAdapter::shapes),
            checkpointing,
        }
    }

    /// Numbers of the head's matrix.
    fn head(&self) -> f64 {
        self.hidden * self.outputs
    }

    fn is_adapted(&self) -> bool {
        self.adapted.0 > 0.0
    }

    /// Products of a row with every matrix of the layers: 2 FLOP for each number.
    fn products(&self, rows: f64) -> f64 {
        2.0 * (self.matrices + self.adapted.1) * rows
    }

    /// Numbers of one head's scores in a layer. Where the layer has a window, a range of queries has the keys that the window leaves.
    fn scores(tokens: Tokens, window: Option<usize>) -> f64 {
        window.map_or(tokens.scores, |most| tokens.scores.min(tokens.rows * most.saturating_add(QUERIES) as f64))
    }

    /// FLOP of attention: 4 for each head, each of its dimensions and each score, in every layer. Of scores that are kept on the chip
    /// those of keys that are seen count.
    fn attention(&self, tokens: Tokens) -> f64 {
        let Tokens { rows, keys, .. } = tokens;
        let seen = |window: Option<usize>| window.map_or(keys, |most| keys.min(rows * most as f64));
        4.0 * self.queries * self.windows.iter().map(|window| seen(*window).max(Self::scores(tokens, *window))).sum::<f64>()
    }

    /// Bytes of so many passes over the scores of attention, which have the width of products.
    fn score_bytes(&self, tokens: Tokens, passes: f64, width: f64) -> f64 {
        self.heads * self.windows.iter().map(|window| Self::scores(tokens, *window)).sum::<f64>() * width * passes
    }

    /// Bytes of so many casts of `numbers` parameters to the width of products.
    fn casts(numbers: f64, times: f64, width: f64) -> f64 {
        if width < WIDE { numbers * (WIDE + width) * times } else { 0.0 }
    }

    /// The trunk's forward pass, in which matrices are cast so many times.
    fn trunk(&self, tokens: Tokens, casts: f64, width: f64) -> Work {
        let Tokens { rows, micro_batches, .. } = tokens;
        Work {
            replayed: 0.0,
            launches: micro_batches * (self.layers * FORWARD_LAYER + self.adapted.0 * ADAPTER_FORWARD + FORWARD_REST),
            bytes: (self.matrices + self.adapted.1) * width * micro_batches
                + Self::casts(self.matrices, casts, width)
                + rows * self.kept * WIDE * KEPT_FORWARD
                + self.score_bytes(tokens, SCORES_FORWARD, width),
            flop: self.products(rows) + self.attention(tokens),
        }
    }

    /// Chunks of tokens that the head reads one after another.
    fn chunks(tokens: Tokens) -> f64 {
        let of_each = tokens.predicted / tokens.micro_batches.max(1.0);
        tokens.micro_batches * (of_each / GPU_CHUNK as f64).ceil()
    }

    /// The head's forward pass, in which its matrix is cast so many times.
    fn head_forward(&self, tokens: Tokens, casts: f64, width: f64) -> Work {
        let chunks = Self::chunks(tokens);
        Work {
            replayed: 0.0,
            launches: chunks * HEAD_FORWARD,
            bytes: chunks * self.head() * width
                + Self::casts(self.head(), casts, width)
                + tokens.predicted * self.outputs * WIDE * LOGITS_FORWARD,
            flop: 2.0 * self.head() * tokens.predicted,
        }
    }

    /// A forward pass, for whose micro-batches the matrices are cast once.
    pub fn forward(&self, tokens: Tokens, width: f64) -> Work {
        self.trunk(tokens, 1.0, width) + self.head_forward(tokens, 1.0, width)
    }

    /// The backward pass. The head makes its logits again, and with gradient checkpointing so do the layers what they did not keep. Frozen
    /// matrices have no gradients of their own.
    pub fn backward(&self, tokens: Tokens, width: f64) -> Work {
        let Tokens { rows, predicted, micro_batches, .. } = tokens;
        let (chunks, full) = (Self::chunks(tokens), if self.is_adapted() { 0.0 } else { 1.0 });
        let head = Work {
            replayed: 0.0,
            launches: chunks * HEAD_BACKWARD,
            // Its matrix is read twice, and the sum of its gradient is read and written.
            bytes: chunks * self.head() * (2.0 * width + full * 2.0 * WIDE) + predicted * self.outputs * WIDE * LOGITS_BACKWARD,
            flop: 2.0 * self.head() * predicted * (2.0 + full),
        };
        let summed = if micro_batches > 1.0 { SUMMED } else { 0.0 };
        let trunk = Work {
            replayed: 0.0,
            launches: micro_batches * (self.layers * BACKWARD_LAYER + self.adapted.0 * ADAPTER_BACKWARD + BACKWARD_REST),
            bytes: (self.matrices + self.adapted.1) * width * micro_batches
                + self.trained * (WIDE + summed) * micro_batches
                + rows * self.kept * WIDE * KEPT_BACKWARD
                + self.score_bytes(tokens, SCORES_BACKWARD, width),
            flop: 2.0 * self.matrices * rows * (1.0 + full) + 4.0 * self.adapted.1 * rows + 2.0 * self.attention(tokens),
        };
        let again = if self.checkpointing { self.trunk(tokens, 0.0, width) } else { Work::default() };
        head + trunk + again
    }

    /// An update of the parameters, of which each of the processes makes its part. Of an optimizer other than AdamW only its state is
    /// counted, as if it ran in as few kernels.
    pub fn update(&self, optimizer: &Optimizer, ranks: usize) -> Work {
        let of = |(name, shape, count): &(&str, Vec<usize>, ElementCount)| {
            *count as f64 * optimizer.state_bytes(Parameter { name, shape }) as f64
        };
        let state: f64 = self.shapes.iter().map(of).sum();
        let ranks = ranks.max(1) as f64;
        Work {
            replayed: 0.0,
            launches: OPTIMIZER,
            bytes: (self.trained * UPDATED + 2.0 * state) / ranks,
            // About as many sums and products for each parameter as AdamW has.
            flop: 20.0 * self.trained / ranks,
        }
    }

    /// The passes over the prompts of a generation, whose matrices are cast once.
    pub fn prefill(&self, generation: Generation, width: f64) -> Work {
        let tokens = generation.prefill();
        // In bfloat16 attention keeps its scores on the chip here.
        let tokens = if width < WIDE { Tokens { scores: 0.0, ..tokens } } else { tokens };
        self.trunk(tokens, 1.0, width) + self.head_forward(tokens, 1.0, width)
    }

    /// All decode steps of a generation. What a layer keeps of a few rows does not leave the chip.
    pub fn decode(&self, generation: Generation, width: f64) -> Work {
        let (steps, rows, keys) = (generation.steps(), generation.sampled(), generation.mean_keys());
        let cached: f64 = match self.windows.len() {
            0 => 0.0,
            layers => self.windows.iter().map(|w| w.map_or(keys, |most| keys.min(most as f64))).sum::<f64>() / layers as f64,
        };
        Work {
            replayed: steps * (self.layers * DECODE_LAYER + self.adapted.0 * ADAPTER_FORWARD + DECODE_REST),
            launches: steps,
            bytes: steps * (self.matrices + self.adapted.1 + self.head()) * width
                + rows * cached * self.cached * width
                + rows * self.outputs * WIDE * LOGITS_DECODE,
            flop: self.products(rows)
                + 2.0 * self.head() * rows
                + self.attention(Tokens { rows, keys: rows * keys, ..Tokens::default() }),
        }
    }
}
