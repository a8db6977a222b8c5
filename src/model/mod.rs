//! Language models: Hugging Face folders in and out, one shared decoder, and the per-token seam to the algorithms.
//!
//! Read in this order: [`config`] (config.json → [`DecoderConfig`], through one small file per family), [`decoder`] (the
//! network), [`causal_lm`] (a network on a device), [`weights`] (safetensors), [`token_stats`] (log-probabilities and
//! entropies per response token, and gradients back), [`ops`] (fused operations).

pub mod causal_lm;
pub mod config;
pub mod decoder;
pub mod device;
pub mod gradients;
mod llama;
pub mod memory;
pub mod micro_batch;
pub mod ops;
mod qwen2;
pub mod rope;
pub mod token_stats;
pub mod weights;

pub use causal_lm::{CausalLm, Init};
pub use config::{DecoderConfig, FAMILIES, Family};
pub use gradients::Gradients;
pub use micro_batch::Cut;
pub use token_stats::{Sequence, TokenStats};
