//! The learning side of a step: the models, their log-probs and values, and their updates.

mod checkpoint;
mod critic;
mod custom_loss;
pub(super) mod distillation;
mod log_prob;
mod mini_batch;
mod passes;
mod probe;
mod reference;
pub(super) mod reference_model;
mod reprompts;
pub(super) mod self_teacher;
mod side;
pub(super) mod teacher;
mod teacher_state;
pub(super) mod totals;
mod update;

pub(super) use checkpoint::LOAD_CONTENTS;
pub(super) use custom_loss::CustomLoss;
pub(super) use side::LearningSide;
