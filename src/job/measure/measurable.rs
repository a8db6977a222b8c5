//! The interface of a pipeline whose steps can be made smaller.

use anyhow::Result;

use super::forecast::TimedStep;
use crate::job::Pipeline;
use burnish_tracking::Metrics;

/// Size of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepSize {
    /// Prompts or examples.
    pub rows: usize,
    /// Token limit of a response; 0 if nothing is sampled.
    pub tokens: usize,
}

/// The run's own step and validation.
#[derive(Clone, Debug)]
pub(crate) struct StepPlan {
    pub size: StepSize,
    /// Word for rows: `prompts` or `examples`.
    pub rows_name: &'static str,
    /// Prompts that a step samples for, at least `size.rows`: dynamic sampling draws more.
    pub drawn_rows: usize,
    /// Responses sampled for each row; 0 if nothing is sampled.
    pub samples: usize,
    /// Mean number of given tokens of a row, over all training rows. A prompt counts once for each of its responses.
    pub given_per_row: f64,
    /// Rows of a validation; 0 without validation.
    pub validated: usize,
    /// First step that trains all models.
    pub step: u64,
    /// Parts of a run that the measurement leaves out.
    pub left_out: Vec<&'static str>,
}

/// A pipeline whose steps can be made smaller, to measure them. Its learning rates are 0.
pub(crate) trait Measurable: Pipeline {
    /// Makes the following steps this large.
    ///
    /// # Errors
    /// If there are fewer rows.
    fn resize(&mut self, size: StepSize) -> Result<()>;

    /// Makes the following validations this large, or smaller if there are fewer rows, and returns their number.
    fn shorten_validation(&mut self, rows: usize) -> usize;

    /// Returns the number of passes, each with fixed costs, that a phase makes in a step of these rows: its updates, the tokens of
    /// the longest response for generation, or 1.
    fn passes(&self, phase: &str, rows: usize, longest: f64) -> f64;

    /// Returns times and tokens of a step of this size from its row.
    fn timed(&self, size: StepSize, row: &Metrics) -> TimedStep;
}
