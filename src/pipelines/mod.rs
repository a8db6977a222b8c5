//! The stages around reinforcement learning. Each stage is a short loop over the same parts.

pub(crate) mod chat;
pub mod distill;
pub mod dpo;
pub mod evaluate;
mod evaluate_conversations;
pub mod export;
pub mod export_card;
mod export_curve;
pub mod generate;
mod generate_conversations;
pub mod generate_dry_run;
mod generate_inputs;
pub(crate) mod reward_check;
pub mod rm;
pub mod serve;
pub mod serve_rm;
pub mod sft;
pub mod stage;
mod stored_numbers;
