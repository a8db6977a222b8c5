//! `trainer reward check`: scores of given responses (`listing`), or an examination of the function before training (`examine`).
//!
//! A probe is one file in `probes/` and one line of its registry. It asks the function by a [`bench::Bench`] and judges what a
//! [`study::Study`] knows: rows, sample responses, right responses.

mod bench;
mod calls;
mod examine;
mod forms;
mod listing;
mod probe;
mod probes;
mod reading;
mod right;
mod row;
mod sampled;
mod study;
mod texts;
mod wins;

pub(crate) use examine::{Examination, ExamineOptions, examine};
pub(crate) use listing::{CheckedResponse, check};
pub(crate) use probe::Probe;
pub(crate) use sampled::LoadGeneration;
