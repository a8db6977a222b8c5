//! The learning side of a step: the models, their log-probs and values, and their updates.

mod checkpoint;
mod critic;
pub mod distillation;
mod log_prob;
mod mini_batch;
mod passes;
mod reference;
pub mod reference_model;
mod side;
pub mod teacher;
pub(super) mod totals;
mod update;

pub use checkpoint::LOAD_CONTENTS;
pub use side::LearningSide;
