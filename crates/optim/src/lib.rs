//! Optimizers by name, learning-rate schedules, and the model they train.
//!
//! An optimizer is a [`Rule`], which updates parameters, and an entry of [`OPTIMIZERS`]; [`Optimizer`] applies it to a network
//! and stores its state. burn's optimizers are not used: they round their constants to f32 first, identify parameters by ids that
//! a checkpoint does not have, and lack options of torch's. The optimizers here make torch's updates in torch's order, with
//! torch's names of states.
//!
//! If several ranks train a model, each updates a share of its parameters (`shards.rs`) and stores only the state of that share.

mod adafactor;
mod adam;
pub mod adamw;
mod adamw_8bit;
mod broken;
mod collective;
mod detached;
#[cfg(test)]
mod example;
mod file_tensors;
#[cfg(test)]
mod goldens;
mod gradient_sum;
mod kind;
pub mod learner;
mod muon;
#[cfg(all(test, feature = "wgpu"))]
mod on_gpu;
mod optimizer;
mod reduce;
mod rule;
pub mod schedule;
mod settings;
#[cfg(test)]
mod several_ranks;
mod sgd;
mod sharded_update;
mod shards;
mod weight_snapshot;

pub use adamw::AdamWConfig;
pub use broken::BrokenWeights;
pub use collective::StatePart;
pub use gradient_sum::GradientSum;
pub use kind::OptimizerKind;
pub use learner::{Learner, Update};
pub use optimizer::Optimizer;
pub use rule::{Parameter, Rule, Slot, TrainedParam};
pub use schedule::Schedule;
pub use settings::{OptimizerOption, OptimizerSettings};
pub use weight_snapshot::{LayerChange, WeightSnapshot, relative_changes};

/// Every optimizer that `optim.optimizer` can name. The first is the default.
pub static OPTIMIZERS: &[OptimizerKind] =
    &[adamw::ADAMW, adam::ADAM, sgd::SGD, adafactor::ADAFACTOR, muon::MUON, adamw_8bit::ADAMW_8BIT];

/// Optimizers of other libraries that are not implemented, and the reason.
pub static ABSENT: &[(&str, &str)] = &[
    ("muon", "that is Megatron's, with other coefficients and scales; torch's is `Muon`"),
    ("_AdamW", "it rounds bfloat16 weights at random, and weights here are float32: use `AdamW`"),
    ("PagedAdamW8bit", "states are in the memory of one process, and nothing is paged: use `AdamW8bit`"),
    ("PagedAdamW", "states are in the memory of one process, and nothing is paged: use `AdamW`"),
];

/// Returns the optimizer with this name or alias, if any.
pub fn find(name: &str) -> Option<&'static OptimizerKind> {
    OPTIMIZERS.iter().find(|o| o.name == name || o.aliases.contains(&name))
}

/// Returns the names and aliases of all optimizers, for messages and the check of settings.
pub fn names() -> Vec<&'static str> {
    OPTIMIZERS.iter().flat_map(|o| std::iter::once(&o.name).chain(o.aliases)).copied().collect()
}
