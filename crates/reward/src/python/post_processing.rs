//! A function in a Python file of the user that processes the scores of a batch.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::{CodeSource, PoolOptions};
use super::pool::Pool;

/// A function that processes scores, in a separate process.
pub struct PythonPostProcessing {
    pool: Pool,
    path: String,
    takes: Vec<String>,
}

/// Responses that have a score, with one value per response in each list.
#[derive(Serialize)]
pub struct ScoredBatch<'a> {
    pub step: u64,
    /// Number of tokens of each response.
    pub lengths: Vec<usize>,
    /// Group of each response, as text: verl's `uid`.
    pub index: Vec<String>,
    pub prompts: Vec<&'a str>,
    pub responses: Vec<&'a str>,
    pub ground_truths: Vec<&'a Value>,
    pub data_sources: Vec<&'a str>,
    /// Values that reward functions report with the score, by name.
    pub extras: BTreeMap<&'a str, Vec<Option<f64>>>,
    #[serde(skip)]
    pub scores: Vec<f32>,
    /// One value per token of all responses.
    #[serde(skip)]
    pub mask: Vec<f32>,
}

/// Result for one response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Processed {
    Score(f32),
    LeftOut,
}

impl PythonPostProcessing {
    /// Loads the file and finds the function in it. The function gets `config` as its argument `config`.
    ///
    /// # Errors
    /// If the file cannot be loaded, the name is not in it, or the function requires an argument that is not passed to it.
    pub fn start(path: &str, name: &str, config: Value, options: PoolOptions) -> Result<Self> {
        let source = CodeSource::PostProcessing { path: path.to_owned(), name: name.to_owned(), config };
        let pool = Pool::start(source, PoolOptions { num_workers: 1, ..options })?;
        let takes = pool.functions().first().and_then(|function| function.columns.clone());
        Ok(Self { takes: takes.context("the worker has no function")?, pool, path: path.to_owned() })
    }

    /// Returns the file that holds the function.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Calls the function. Returns one result per response, or `None` if the function leaves all scores unchanged.
    ///
    /// # Errors
    /// The errors of a [`Pool`]: a [`RewardError`](crate::reward_error::RewardError) of the function as the root cause, or an
    /// interrupt.
    pub fn process(&self, mut responses: ScoredBatch) -> Result<Option<Vec<Processed>>> {
        let takes = |name: &str| self.takes.iter().any(|own| own == name);
        if !takes("prompts") {
            responses.prompts.clear();
        }
        if !takes("responses") {
            responses.responses.clear();
        }
        let count = responses.scores.len();
        let columns = [responses.scores.as_slice(), &responses.mask];
        let (_, mut scores) = self.pool.call_with_columns(0, &responses, &columns, 2 * count)?;
        if scores.is_empty() {
            return Ok(None);
        }
        ensure!(scores.len() == 2 * count, "the reply of a worker has {} values instead of {}", scores.len(), 2 * count);
        let keep = scores.split_off(count);
        let each = scores.into_iter().zip(keep);
        Ok(Some(each.map(|(score, keep)| if keep == 0.0 { Processed::LeftOut } else { Processed::Score(score) }).collect()))
    }
}
