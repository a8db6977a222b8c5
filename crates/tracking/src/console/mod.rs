//! The terminal: one line per step with the most important metrics, one more per validation, and tables of samples.
//!
//! All other metrics are only in the metrics file. Colours are used if standard output is a terminal and NO_COLOR is unset. On a
//! terminal, a step's line is cut to the terminal's width: the least important metrics are left out.

mod samples;
mod terminal;

pub(super) use terminal::{Console, TRACKER};
