//! Layers that mix tokens by a recurrence in place of attention: gated delta nets (Qwen3-Next, Qwen3.5), short convolutions
//! (LFM2) and Mamba-2 (Granite 4, Falcon-H1). Training runs them over packed rows; generation keeps the state of each sequence in a
//! slot of `state_pool.rs`.

mod delta_net;
mod mamba;
mod mamba_config;
mod recurrent_config;
mod short_conv;
pub(crate) mod state_pool;

pub use delta_net::{ConvKernel, DeltaNet};
pub use mamba::Mamba;
pub use recurrent_config::{DeltaNetShape, MambaNorm, MambaShape, RecurrentKind, RecurrentLayers};
pub use short_conv::ShortConv;
