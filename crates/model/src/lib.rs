//! Language models: reads and writes Hugging Face folders, runs one shared decoder, and gives algorithms their per-token
//! statistics.
//!
//! Reading order:
//!
//! - [`hf_config`]: config.json → [`DecoderConfig`], through one small file per family in [`families`];
//! - [`decoder`] (the network), [`causal_lm`] (a network on a device), [`weights`] (safetensors, in the names of [`naming`]);
//! - [`nf4`]: frozen matrices in 4 bits;
//! - [`experts`]: mixtures of experts in place of MLPs;
//! - [`token_stats`]: log-probabilities and entropies per response token, and gradients back;
//! - [`labels`] (classifiers), [`readout`] (head outputs at chosen tokens), [`scalar`] (critics and reward models), [`lora`]
//!   (adapters);
//! - `decoding`, [`decode_graph`] and [`kv_cache`]: inference, token by token;
//! - [`tensor_files`] (writes weights) and [`ops`] (fused operations).

mod bare_infinity;
#[cfg(test)]
mod buffers;
mod build;
pub mod causal_lm;
pub mod config;
#[cfg(any(feature = "cuda", test))]
pub mod cuda_paths;
pub mod decode_graph;
pub mod decoder;
mod decoding;
pub mod device;
#[cfg(feature = "gpu")]
pub mod device_failure;
pub mod devices;
mod distributions;
mod ema;
pub mod experts;
pub mod families;
mod file_layout;
mod fingerprint;
pub mod gpu_backends;
pub mod gradients;
pub mod hf_config;
pub mod hf_reader;
#[cfg(feature = "gpu")]
mod kernel_cache;
pub mod kv_cache;
pub mod labels;
mod latent_attention;
mod latent_shape;
mod layer_inputs;
pub mod layer_shape;
pub mod linear_attention;
pub mod lora;
mod low_precision_weights;
pub mod matrix;
pub mod memory;
pub mod micro_batch;
mod mlp;
pub mod naming;
pub mod nf4;
mod noise;
pub mod ops;
mod pass;
pub mod readout;
mod residual_stream;
pub mod rope;
pub mod rounded_files;
mod sampled;
pub mod scalar;
mod sequence;
mod shape_of_layer;
mod shared_keys;
mod skipped_tensors;
pub mod tensor_files;
pub mod tensor_values;
mod token_mixer;
pub mod token_stats;
mod trunk_pass;
mod untied_head;
mod weight_bytes;
pub mod weight_tensor;
pub mod weights;

pub use causal_lm::{CausalLm, Init};
pub use config::DecoderConfig;
pub use distributions::{DistributionLoss, Distributions};
pub use experts::{RouterLog, RouterStats};
pub use families::{FAMILIES, Family};
pub use gradients::Gradients;
pub use kv_cache::KvCache;
pub use labels::{HeadInit, NewHead};
pub use lora::LoraSettings;
pub use micro_batch::Cut;
pub use noise::EmbeddingNoise;
pub use ops::{TopK, cpu_kernels};
pub use readout::Readout;
pub use sequence::Sequence;
pub use token_stats::{ComparisonTarget, Divergence, MarkedSequence, SparseMeasure, TokenStats};
