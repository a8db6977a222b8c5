//! The stages around reinforcement learning, each a short loop on the same parts.

pub mod sft;
