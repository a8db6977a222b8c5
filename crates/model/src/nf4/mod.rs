//! Matrices in 4 bits, in bitsandbytes' layout: NormalFloat4 (Dettmers et al. 2023, QLoRA, <https://arxiv.org/abs/2305.14314>).
//!
//! A matrix is cut, row after row, into blocks of 64 values. Each value is a code of 4 bits for one of 16 quantiles of the normal
//! distribution, and each block has a scale, its largest magnitude. With double quantisation the scales are in 8 bits themselves.
//!
//! [`settings`](FourBit) is how a model asks for it, `matrix` holds codes, `scales` holds scales, and [`dynamic_map`] is the table
//! of 8-bit values, which 8-bit optimizers use too. `weight` places a matrix on the device of its model, `on_gpu` in the memory of a
//! GPU. Products with such matrices are in `ops/nf4.rs` and, on GPUs, in `ops/cube/nf4.rs`.

mod dynamic_map;
mod matrix;
#[cfg(feature = "gpu")]
mod on_gpu;
mod scales;
mod settings;
mod weight;

pub use dynamic_map::dynamic_map;
pub use settings::FourBit;
pub use weight::Nf4Weight;

pub(crate) use matrix::Nf4Matrix;
pub(crate) use weight::LARGEST_PART;
#[cfg(feature = "gpu")]
pub(crate) use {matrix::BLOCK, on_gpu::GpuNf4, on_gpu::OFFSET, scales::GROUP};
