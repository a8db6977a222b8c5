//! The language-model head of the token statistics: statistics of p = softmax(h·wᵀ) per token, and their gradients in closed
//! form. The CPU works in tiles of the logits, other devices in chunks of tokens. No [tokens, vocabulary] tensor exists as a
//! whole, and nothing here is part of an autodiff graph:
//!
//! d logits = g_logp·(onehot − p) − g_H·p·(log p + H) + g_D·dD
//!
//! D is a [`Divergence`] from the distribution q of a second model, whose logits are computed in the same tiles
//! ([`Compared::Head`]), or from a teacher's top-k tokens, which were computed before ([`Compared::TopK`]).
//!
//! - `types`: inputs and outputs; `calls`: the public functions;
//! - `flex`: the implementation on the CPU, and `fused_backward` for losses whose terms read only their own token;
//! - `gpu`: the implementation on GPUs, and `gpu_gradient_inputs`, its per-token inputs;
//! - `composed`: burn's operations for other cases (f64, and bfloat16 on the CPU);
//! - `distributions`: whole distributions of chosen tokens;
//! - `divergence`: the formulas; `top_k`: the sparse teacher; `sparse`: the measures on its tokens.

mod calls;
mod composed;
mod distributions;
mod divergence;
mod flex;
mod fused_backward;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "gpu")]
mod gpu_gradient_inputs;
mod products;
mod softmax;
mod sparse;
mod tiles;
mod top_k;
mod types;

pub use calls::{head_backward, head_fused_backward, head_log_probs, head_stats, head_top_k};
pub use distributions::{head_distributions, head_distributions_backward};
pub use divergence::Divergence;
pub(crate) use fused_backward::tokens_at_once;
pub(crate) use products::GPU_CHUNK;
pub use sparse::SparseMeasure;
pub use tiles::tile;
pub use top_k::{LargestLogits, TopK, TopKStats};
pub use types::{Compared, Head, HeadStats, Softcap, TokenGrads, TokenStats};
