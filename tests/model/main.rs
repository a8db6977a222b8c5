//! Models: operations, gradients, families, LoRA, generation, scoring heads, checkpoints and export; on the CPU or on the chosen
//! [`device`].
#![expect(clippy::print_stdout, reason = "tests print what they skip and count; their helpers print too")]

mod ahead;
mod bfloat16;
#[cfg(feature = "gpu")]
mod budgets;
mod cancelled;
mod checkpoint;
mod conversations;
#[cfg(feature = "gpu")]
mod counts;
mod device;
#[cfg(feature = "gpu")]
mod device_run;
mod divergence;
mod every_family;
mod experts;
mod export;
mod failing_kernel;
mod families;
mod family_optimizers;
mod gradients;
mod lora;
mod ops;
mod own_heads;
mod plain;
mod quantised;
mod readout;
mod recurrent;
mod reward_model;
mod rollout;
mod sampling_extremes;
mod saved_models;
mod scores;
mod transformers;
