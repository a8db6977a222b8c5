//! Counts that depend on the kernels and not on a model's shape: launches, and how often numbers pass through memory.
//!
//! Launches are budgets that `tests/model/budgets.rs` holds, for a model with biases and one range of queries: change both together. Those of adapters,
//! and all passes through memory, are read from the code, and no test holds them.

/// Launches of a layer in a decode step.
pub const DECODE_LAYER: f64 = 12.0;
/// Launches of a decode step beside its layers: what begins it, first norm, head, sampling, and in bfloat16 casts of the hidden states and
/// the logits.
pub const DECODE_REST: f64 = 6.0;
/// Launches of a layer in a forward pass.
pub const FORWARD_LAYER: f64 = 19.0;
/// Launches of a layer in the backward pass of a micro-batch: with the forward pass, 73. Between the two they are divided as if the
/// forward pass kept nothing.
pub const BACKWARD_LAYER: f64 = 54.0;
/// Launches of a forward pass beside layers and head.
pub const FORWARD_REST: f64 = 4.0;
/// Launches of a backward pass beside layers and head: with the forward pass and the head, 27.
pub const BACKWARD_REST: f64 = 17.0;
/// Launches of the head for a chunk of tokens, forward.
pub const HEAD_FORWARD: f64 = 2.0;
/// Launches of the head for a chunk of tokens, backward: its logits are made again.
pub const HEAD_BACKWARD: f64 = 4.0;
/// Launches of an update of all parameters, with the norm of the gradient.
pub const OPTIMIZER: f64 = 10.0;
/// Launches of an adapted matrix beside those of the matrix, forward: two products and a sum.
pub const ADAPTER_FORWARD: f64 = 3.0;
/// Launches of an adapted matrix beside those of the matrix, backward.
pub const ADAPTER_BACKWARD: f64 = 6.0;

/// Passes over the f32 logits of a chunk, forward: written, and read for all statistics.
pub const LOGITS_FORWARD: f64 = 2.0;
/// Passes over the f32 logits of a chunk, backward: written again, and turned into their gradient in place.
pub const LOGITS_BACKWARD: f64 = 3.0;
/// Passes over the f32 logits of a decode step: written, and read by the sampler.
pub const LOGITS_DECODE: f64 = 2.0;
/// Passes over each number that a layer keeps, forward: written by one kernel, read by the next.
pub const KEPT_FORWARD: f64 = 2.0;
/// Passes over each number that a layer keeps, backward: read, its gradient written and read.
pub const KEPT_BACKWARD: f64 = 3.0;
/// Passes over the scores of attention, forward: products written; read for the maximum, the sum and the softmax; that written, and read by
/// the next product. 0 of an attention that keeps them on the chip.
pub const SCORES_FORWARD: f64 = 6.0;
/// The same, backward: the products and the gradient of the softmax written and read, the softmax and the gradient of the products written, and
/// read by three products.
pub const SCORES_BACKWARD: f64 = 9.0;
