//! An advantage estimator in a Python file of the user, with verl's signature.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::options::{PoolOptions, Source};
use super::pool::Pool;

/// A column for an estimator.
#[derive(Clone, Copy, Debug)]
pub struct PythonColumn<'a> {
    /// The name of the parameter that gets it.
    pub name: &'static str,
    /// True if it has one number for each token, false for each response.
    pub per_token: bool,
    pub values: &'a [f32],
}

/// An advantage estimator in a process of its own.
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
    /// The group of each response, as text: verl's `uid`.
    index: Vec<String>,
    /// The name of each column, and whether it is one of tokens.
    columns: Vec<(&'a str, bool)>,
}

impl PythonEstimator {
    /// Loads the file and finds the estimator in it. `config` is what the function gets as `config`.
    ///
    /// # Errors
    /// A file that cannot be loaded, a name that is not in it, or a function that requires what is not given to it.
    pub fn start(path: &str, name: &str, config: Value, options: PoolOptions) -> Result<Self> {
        let source = Source::Estimator { path: path.to_owned(), name: name.to_owned(), config };
        let pool = Pool::start(source, PoolOptions { num_workers: 1, ..options })?;
        let function = pool.functions().first().context("a worker offers no estimator")?;
        let (takes, requires) = (function.columns.clone().unwrap_or_default(), function.wants.clone());
        Ok(Self { pool, path: path.to_owned(), name: name.to_owned(), takes, requires })
    }

    /// The file that holds the function.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the function takes this argument.
    pub fn takes(&self, argument: &str) -> bool {
        self.takes.iter().any(|name| name == argument)
    }

    /// True if the function cannot be called without this argument.
    pub fn requires(&self, argument: &str) -> bool {
        self.requires.iter().any(|name| name == argument)
    }

    /// Calls the function for responses of these lengths, of which those with the same number in `group` answer the same prompt. Returns
    /// advantages and returns, each with one number per token.
    ///
    /// # Errors
    /// A [`Failure`](crate::failure::Failure) of the function as the root cause, or an interrupt.
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
        ensure!(advantages.len() == 2 * tokens, "a worker replies with {} numbers, not {}", advantages.len(), 2 * tokens);
        let returns = advantages.split_off(tokens);
        Ok((advantages, returns))
    }
}
