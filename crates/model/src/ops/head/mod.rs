//! The language-model head of the token statistics: statistics of p = softmax(h·wᵀ) per token, and their gradients in closed
//! form, in tiles of the logits on the CPU and in chunks of tokens elsewhere. No [tokens, vocabulary] tensor exists as a whole,
//! and nothing here is part of an autodiff graph:
//!
//! d logits = g_logp·(onehot − p) − g_H·p·(log p + H) + g_D·dD
//!
//! where D is a [`Divergence`] from the distribution q of a second model, whose logits are made in the same tiles
//! ([`Compared::Head`]), or from the k most likely tokens of a teacher, which were made before ([`Compared::TopK`]).
//!
//! `types` has what goes in and out, `calls` the functions, `flex` their body for the CPU and `gpu` that for GPUs, `composed` one of burn's
//! operations for what neither takes (f64, and bfloat16 on the CPU), `at_once` a body for losses that need no token but their own,
//! `divergence` the formulas and `top_k` the sparse teacher.

mod at_once;
mod calls;
mod composed;
mod divergence;
mod flex;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "gpu")]
mod gpu_given;
mod products;
mod softmax;
mod tiles;
mod top_k;
mod types;

pub use at_once::kept;
pub use calls::{head_at_once, head_backward, head_stats, head_top_k};
pub use divergence::Divergence;
pub use products::GPU_CHUNK;
pub use tiles::tile;
pub use top_k::{TopK, TopKStats};
pub use types::{Compared, Head, HeadStats, Softcap, TokenGrads, TokenStats};
