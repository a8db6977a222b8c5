//! LoRA (Hu et al. 2021, <https://arxiv.org/abs/2106.09685>), in PEFT's layout and with PEFT's initial values: a projection gives
//! y = x·Wᵀ + (alpha/r)·(x·Aᵀ)·Bᵀ, where W is frozen, A [r, in] is drawn uniformly from ±1/√in and B [out, r] starts at 0.
//!
//! Adapters run beside the frozen matrices everywhere, in generation too: nothing is merged for a rollout, so that no second
//! copy of the matrices exists and generation computes what training does.
//!
//! [`targets`] selects the projections, `start` makes the adapter that training starts from, [`peft`] reads and writes files, and
//! `attach` puts adapters on a model and takes them off.

pub mod peft;
pub mod targets;

mod adapted;
mod attach;
mod settings;
mod start;

pub use adapted::Adapted;
pub use settings::LoraSettings;
