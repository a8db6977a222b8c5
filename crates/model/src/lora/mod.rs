//! LoRA (Hu et al. 2021, <https://arxiv.org/abs/2106.09685>), in PEFT's layout and with PEFT's initial values: a projection
//! computes y = x·Wᵀ + (alpha/r)·(x·Aᵀ)·Bᵀ. W is frozen, A [r, in] is drawn uniformly from ±1/√in, and B [out, r] starts at 0.
//!
//! Adapters are never merged for a rollout: generation runs them next to the frozen matrices, as training does. So no second copy
//! of the matrices exists, and generation computes the same values as training.
//!
//! [`targets`] selects the projections, `start` creates the initial adapter, [`peft`] reads and writes files, and `attach`
//! attaches adapters to a model and removes them.

pub mod peft;
pub mod targets;

mod adapter_info;
mod attach;
mod settings;
mod start;

pub use adapter_info::AdapterInfo;
pub use settings::LoraSettings;
