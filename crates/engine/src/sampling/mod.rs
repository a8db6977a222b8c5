//! Sampling: one row of logits and one uniform number give one token.
//!
//! Parameters and their order are vLLM's (0.33.0, `vllm/v1/sample/sampler.py`): allowed tokens, bad words, stop tokens before
//! `min_tokens`, biases, the penalties for repetition, frequency and presence; then temperature, min-p, top-k and top-p.

mod changes;
mod device;
mod distribution;
mod draw;
mod score;

pub use changes::{LogitChanges, PenalizedToken, TokenHistory};
pub use device::DrawRow;
pub(crate) use device::{drawn_rows, draws_on_device, row_settings, sample_on_device};
pub use draw::{Drawn, sample};
pub(crate) use score::score;
