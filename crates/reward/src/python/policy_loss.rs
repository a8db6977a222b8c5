//! A policy loss in a Python file of the user, with verl's signature.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::{CodeSource, PoolOptions};
use super::pool::Pool;

/// A policy loss in a separate process, which computes the gradient with torch.
pub struct PythonPolicyLoss {
    pool: Pool,
    path: String,
    name: String,
    takes: Vec<String>,
    requires: Vec<String>,
}

/// The inputs of one micro-batch of whole responses. All columns have one value per token.
pub struct PolicyLossColumns<'a> {
    /// Number of tokens of each response.
    pub lengths: Vec<usize>,
    /// Each column under the name of its parameter; `log_prob` and `entropy` must be among them.
    pub columns: Vec<(&'static str, &'a [f32])>,
    /// `actor.loss_agg_mode`.
    pub loss_agg_mode: &'static str,
    /// Counts of the mini-batch, which verl's `agg_loss` divides by.
    pub global_batch_info: GlobalBatchInfo,
}

/// Counts of the mini-batch, under the names of verl's `config.global_batch_info`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GlobalBatchInfo {
    /// Always 1: every process counts the whole mini-batch.
    pub dp_size: usize,
    /// Trained tokens.
    pub batch_num_tokens: f64,
    /// Responses, those without a trained token included.
    pub global_batch_size: usize,
    pub loss_scale_factor: f64,
}

#[derive(Serialize)]
struct LossArguments<'a> {
    lengths: &'a [usize],
    columns: Vec<&'static str>,
    loss_agg_mode: &'static str,
    global_batch_info: GlobalBatchInfo,
}

/// The part of a micro-batch in the loss of its mini-batch.
#[derive(Debug, Default)]
pub struct PolicyLossValue {
    pub loss: f64,
    /// ∂loss/∂log_prob and ∂loss/∂entropy, one value per token.
    pub d_log_prob: Vec<f32>,
    pub d_entropy: Vec<f32>,
    pub metrics: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct LossReply {
    loss: Number,
    metrics: BTreeMap<String, Number>,
}

/// A number; text if JSON lacks it, such as `NaN`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Text(String),
}

impl Number {
    fn value(&self) -> Result<f64> {
        match self {
            Self::Finite(value) => Ok(*value),
            Self::Text(text) => text.parse().with_context(|| format!("the reply of a worker has {text:?} for a number")),
        }
    }
}

impl PythonPolicyLoss {
    /// Loads the file and finds the loss in it. The function gets `config` as its argument `config`.
    ///
    /// # Errors
    /// If the file cannot be loaded, the name is not in it, the function requires an argument that is not passed to it, or the
    /// interpreter has no torch.
    pub fn start(path: &str, name: &str, config: Value, options: PoolOptions) -> Result<Self> {
        let source = CodeSource::PolicyLoss { path: path.to_owned(), name: name.to_owned(), config };
        let pool = Pool::start(source, PoolOptions { num_workers: 1, ..options })?;
        let function = pool.functions().first().context("the worker has no policy loss")?;
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

    /// Calls the function for a micro-batch. Returns its loss with the gradient; values may be NaN or infinite.
    ///
    /// # Errors
    /// The errors of a [`Pool`]: a [`RewardError`](crate::reward_error::RewardError) of the function as the root cause, or an
    /// interrupt.
    pub fn evaluate(&self, x: &PolicyLossColumns) -> Result<PolicyLossValue> {
        let arguments = LossArguments {
            lengths: &x.lengths,
            columns: x.columns.iter().map(|(name, _)| *name).collect(),
            loss_agg_mode: x.loss_agg_mode,
            global_batch_info: x.global_batch_info,
        };
        let columns: Vec<&[f32]> = x.columns.iter().map(|(_, values)| *values).collect();
        let tokens: usize = x.lengths.iter().sum();
        let (reply, mut d_log_prob) = self.pool.call_with_columns(0, &arguments, &columns, 2 * tokens)?;
        ensure!(
            d_log_prob.len() == 2 * tokens,
            "the reply of a worker has {} values instead of {}",
            d_log_prob.len(),
            2 * tokens
        );
        let d_entropy = d_log_prob.split_off(tokens);
        let reply: LossReply = serde_json::from_value(reply).context("the reply of a worker has no loss")?;
        let metrics = reply.metrics.iter().map(|(name, value)| Ok((name.clone(), value.value()?)));
        Ok(PolicyLossValue { loss: reply.loss.value()?, d_log_prob, d_entropy, metrics: metrics.collect::<Result<_>>()? })
    }
}
