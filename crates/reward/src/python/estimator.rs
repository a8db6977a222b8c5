//! An advantage estimator in a Python file of the user, with verl's signature.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::options::{CodeSource, PoolOptions};
use super::pool::Pool;

/// A column for an estimator.
#[derive(Clone, Copy, Debug)]
pub struct PythonColumn<'a> {
    /// Name of the parameter that gets the column.
    pub name: &'static str,
    /// True if it has one value per token, rather than one per response.
    pub per_token: bool,
    pub values: &'a [f32],
}

/// An advantage estimator in a separate process.
pub struct PythonEstimator {
    pool: Pool,
    path: String,
    name: String,
    takes: Vec<String>,
    requires: Vec<String>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    lengths: &'a [usize],
    /// Group of each response, as text: verl's `uid`.
    index: Vec<String>,
    /// Name of each column, and true if it has one value per token.
    columns: Vec<(&'a str, bool)>,
}

impl PythonEstimator {
    /// Loads the file and finds the estimator in it. The function gets `config` as its argument `config`.
    ///
    /// # Errors
    /// If the file cannot be loaded, the name is not in it, or the function requires an argument that is not passed to it.
    pub fn start(path: &str, name: &str, config: Value, options: PoolOptions) -> Result<Self> {
        let source = CodeSource::Estimator { path: path.to_owned(), name: name.to_owned(), config };
        let pool = Pool::start(source, PoolOptions { num_workers: 1, ..options })?;
        let function = pool.functions().first().context("the worker has no estimator")?;
        let (takes, requires) = (function.columns.clone().unwrap_or_default(), function.wants.clone());
        Ok(Self { pool, path: path.to_owned(), name: name.to_owned(), takes, requires })
    }

    /// Returns the file that holds the function.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the function takes this argument.
    pub fn takes(&self, argument: &str) -> bool {
        self.takes.iter().any(|name| name == argument)
    }

    /// Returns true if the function cannot be called without this argument.
    pub fn requires(&self, argument: &str) -> bool {
        self.requires.iter().any(|name| name == argument)
    }

    /// Calls the function for responses of these lengths; responses with the same value in `group` share a prompt. Returns
    /// advantages and returns, each with one value per token.
    ///
    /// # Errors
    /// The errors of a [`Pool`]: a [`RewardError`](crate::reward_error::RewardError) of the function as the root cause, or an
    /// interrupt.
    pub fn estimate(&self, lengths: &[usize], group: &[usize], columns: &[PythonColumn]) -> Result<(Vec<f32>, Vec<f32>)> {
        let columns: Vec<&PythonColumn> = columns.iter().filter(|column| self.takes(column.name)).collect();
        let arguments = Arguments {
            lengths,
            index: group.iter().map(ToString::to_string).collect(),
            columns: columns.iter().map(|column| (column.name, column.per_token)).collect(),
        };
        let values: Vec<&[f32]> = columns.iter().map(|column| column.values).collect();
        let tokens: usize = lengths.iter().sum();
        let (_, mut advantages) = self.pool.call_with_columns(0, &arguments, &values, 2 * tokens)?;
        ensure!(
            advantages.len() == 2 * tokens,
            "the reply of a worker has {} values instead of {}",
            advantages.len(),
            2 * tokens
        );
        let returns = advantages.split_off(tokens);
        Ok((advantages, returns))
    }
}
