//! Options of a pool: the code of the functions, the resources of their processes, and the style in which each function is
//! called.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::function::RowPart;
use burnish_util::interrupt::Interrupt;

/// Code that holds the functions.
#[derive(Clone, Debug)]
pub enum CodeSource {
    /// A file of the user: `file://PATH` or `pkg://MODULE` (as in verl).
    File {
        path: String,
        /// The functions' names in the file. If the only name is `compute_score`, verl's default, and the file lacks it,
        /// `reward_func` is used.
        names: Vec<String>,
        /// Keyword arguments for each function; they take precedence over arguments from a row.
        reward_kwargs: Map<String, Value>,
        /// True if functions that score one response are called with positional arguments, as by verl's prime manager, instead of
        /// keyword arguments.
        positional: bool,
    },
    /// Built-in code, whose functions take and return any JSON value.
    BuiltIn { name: &'static str, code: &'static str, functions: &'static [&'static str] },
    /// A file of the user with an advantage estimator: a function of this name, or one registered under it as in verl.
    Estimator {
        path: String,
        name: String,
        /// Settings that the estimator gets as `config`.
        config: Value,
    },
    /// A file of the user with a policy loss: a function of this name, or one registered under it as in verl. `config`: the
    /// settings of the actor.
    PolicyLoss { path: String, name: String, config: Value },
    /// A file of the user with a function of this name, which processes the scores of a batch.
    PostProcessing { path: String, name: String, config: Value },
}

impl CodeSource {
    pub(super) fn title(&self) -> &str {
        match self {
            Self::File { path, .. }
            | Self::Estimator { path, .. }
            | Self::PolicyLoss { path, .. }
            | Self::PostProcessing { path, .. } => path,
            Self::BuiltIn { name, .. } => name,
        }
    }

    /// Returns the setting that names the functions.
    pub(super) fn name_key(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::BuiltIn { .. } => "custom_reward_function.name",
            Self::Estimator { .. } => "algorithm.adv_estimator",
            Self::PolicyLoss { .. } => "actor_rollout_ref.actor.policy_loss.loss_mode",
            Self::PostProcessing { .. } => "algorithm.post_processing.name",
        }
    }
}

/// Options of a pool's workers.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Python interpreter, version 3.8 or later.
    pub python: String,
    pub num_workers: usize,
    /// Time limit of one call.
    pub timeout: Duration,
    /// Time limit for loading the code.
    pub start_timeout: Duration,
    /// Memory that each process can allocate, in MiB.
    pub memory_limit_mb: Option<u64>,
    /// Processor time of one call, in seconds.
    pub cpu_limit: Option<u64>,
    /// Environment variables that workers get in addition to the usual ones.
    pub pass_env: Vec<String>,
    pub interrupt: Interrupt,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            num_workers: 8,
            timeout: Duration::from_secs(300),
            start_timeout: Duration::from_secs(60),
            memory_limit_mb: Some(8192),
            cpu_limit: None,
            pass_env: Vec::new(),
            interrupt: Interrupt::default(),
        }
    }
}

/// Style in which a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// verl's reward manager: one response, by keyword or by position.
    Verl,
    /// verl's batch manager: all responses at once.
    VerlBatch,
    /// TRL's reward functions, which get a batch.
    Trl,
    /// OpenRLHF's `reward_func`.
    OpenRlhf,
    /// Functions of [`CodeSource::BuiltIn`].
    Plain,
    /// Functions of [`CodeSource::Estimator`].
    Estimator,
    /// Functions of [`CodeSource::PolicyLoss`].
    PolicyLoss,
    /// Functions of [`CodeSource::PostProcessing`].
    PostProcessing,
}

/// A function that workers offer.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub style: Style,
    /// Arguments that the function takes; `None` for any.
    pub columns: Option<Vec<String>>,
    /// Columns of the data set that the function requires; for an estimator, the columns of the batch.
    pub wants: Vec<String>,
    /// Parts of a row that the function's code uses.
    pub(super) reads: Vec<String>,
}

impl Signature {
    /// Parses a signature as a worker writes it; `None` for any other text.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let style = match value["style"].as_str()? {
            "verl" | "verl_positional" => Style::Verl,
            "verl_batch" => Style::VerlBatch,
            "trl" => Style::Trl,
            "openrlhf" => Style::OpenRlhf,
            "plain" => Style::Plain,
            "estimator" => Style::Estimator,
            "policy_loss" => Style::PolicyLoss,
            "post_processing" => Style::PostProcessing,
            _ => return None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let names = |names: &Vec<Value>| names.iter().filter_map(text).collect();
        let columns = value["columns"].as_array().map(names);
        let wants = value["wants"].as_array().map(names).unwrap_or_default();
        let reads = value["reads"].as_array().map(names).unwrap_or_default();
        Some(Self { name: text(&value["name"])?, style, columns, wants, reads })
    }

    /// Returns true if the function's code uses this part of a row.
    pub fn reads(&self, part: RowPart) -> bool {
        let name = match part {
            RowPart::DataSource => "data_source",
            RowPart::GroundTruth => "ground_truth",
            RowPart::Solution => return false,
        };
        self.reads.iter().any(|read| read == name)
    }
}
