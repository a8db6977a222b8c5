//! A model of time: what a step should take on a GPU, from the shapes of its models and the lengths of its sequences.
//!
//! Every phase is counted in kernel launches, in bytes that pass between a chip and its memory, and in floating-point operations, and
//! takes as long as the slowest of the three (the roofline model). Nothing is measured: a real run is held against these times.
//!
//! `budgets` has the counts of launches, and `cards` the figures of cards and the shares of them that programs reach: both are what to
//! correct after a measurement. `work` is the time of some work on a card, `tokens` the size of a pass, `costs` the work of a model's
//! passes, `estimate` the phases of a step, `report` their page.

mod budgets;
mod cards;
mod costs;
mod estimate;
mod report;
#[cfg(test)]
mod tests;
mod tokens;
mod work;

pub use costs::Costs;
pub use estimate::TimeEstimate;
pub use tokens::{Generation, Sequences, Tokens};
