//! Models: operations, gradients, families, LoRA, generation, scoring heads, checkpoints and export.

mod bfloat16;
mod checkpoint;
mod conversations;
mod divergence;
mod export;
mod families;
mod gradients;
mod lora;
mod ops;
mod plain;
mod readout;
mod reward_model;
mod rollout;
mod transformers;
