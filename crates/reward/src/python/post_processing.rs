//! A function in a Python file of the user that processes the scores of a batch.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::{PoolOptions, Source};
use super::pool::Pool;

/// A function that processes scores, in a process of its own.
pub struct PythonPostProcessing {
    pool: Pool,
    path: String,
    takes: Vec<String>,
}

/// The responses that have a score, and what is known of each.
#[derive(Serialize)]
pub struct ScoredResponses<'a> {
    pub step: u64,
    /// The number of tokens of each.
    pub lengths: Vec<usize>,
    /// The group of each, as text: verl's `uid`.
    pub index: Vec<String>,
    pub prompts: Vec<&'a str>,
    pub responses: Vec<&'a str>,
    pub ground_truths: Vec<&'a Value>,
    pub data_sources: Vec<&'a str>,
    /// Numbers that reward functions report beside the score, by name.
    pub extras: BTreeMap<&'a str, Vec<Option<f64>>>,
    #[serde(skip)]
    pub scores: Vec<f32>,
    /// One number per token of all responses.
    #[serde(skip)]
    pub mask: Vec<f32>,
}

/// The result for one response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Processed {
    Score(f32),
    LeftOut,
}

impl PythonPostProcessing {
    /// Loads the file and finds the function in it. `config` is what the function gets as `config`.
    ///
    /// # Errors
    /// A file that cannot be loaded, a name that is not in it, or a function that requires what is not given to it.
    pub fn start(path: &str, name: &str, config: Value, options: PoolOptions) -> Result<Self> {
        let source = Source::PostProcessing { path: path.to_owned(), name: name.to_owned(), config };
        let pool = Pool::start(source, PoolOptions { num_workers: 1, ..options })?;
        let takes = pool.functions().first().and_then(|function| function.columns.clone());
        Ok(Self { takes: takes.context("a worker offers no function")?, pool, path: path.to_owned() })
    }

    /// The file that holds the function.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Calls the function. Returns one result per response, or `None` where it leaves all scores as they are.
    ///
    /// # Errors
    /// A [`Failure`](crate::failure::Failure) of the function as the root cause, or an interrupt.
    pub fn process(&self, mut responses: ScoredResponses) -> Result<Option<Vec<Processed>>> {
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
        ensure!(scores.len() == 2 * count, "a worker replies with {} numbers, not {}", scores.len(), 2 * count);
        let keep = scores.split_off(count);
        let each = scores.into_iter().zip(keep);
        Ok(Some(each.map(|(score, keep)| if keep == 0.0 { Processed::LeftOut } else { Processed::Score(score) }).collect()))
    }
}
