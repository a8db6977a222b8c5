//! One call of the engine: new sequences are prefilled, all decode together, and each whose turn ends makes room for the next.
//! The sequence keeps its blocks of the cache until it resumes or ends.

mod admission;
mod drawing;
mod run;
mod scoring;
mod state;

pub(super) use state::{BatchLimits, GenerationState};
