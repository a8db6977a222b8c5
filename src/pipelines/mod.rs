//! The stages around reinforcement learning, each a short loop on the same parts.

pub mod evaluate;
pub mod export;
pub mod generate;
pub mod serve_rm;
pub mod sft;
pub mod sft_dry_run;
mod sft_inputs;
