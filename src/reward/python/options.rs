//! What a pool is made of: where the functions are, what their processes may use, and how the functions want to be called.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::util::interrupt::Interrupt;

/// Where the functions are.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of the user's, `file://PATH` or `pkg://MODULE` (as in verl).
    File {
        path: String,
        /// Functions of the file. `compute_score` alone, which is verl's default, stands for `reward_func` where that is missing.
        names: Vec<String>,
        /// Arguments by keyword for each function, before any that are given by a row.
        reward_kwargs: Map<String, Value>,
        /// Whether functions that score one response are called in the order of verl's prime manager, not by keyword.
        positional: bool,
    },
    /// Code of ours, whose functions take and return anything that JSON has.
    BuiltIn { name: &'static str, code: &'static str, functions: &'static [&'static str] },
}

impl Source {
    pub(super) fn title(&self) -> &str {
        match self {
            Self::File { path, .. } => path,
            Self::BuiltIn { name, .. } => name,
        }
    }
}

/// Limits of workers.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The interpreter, 3.8 or later.
    pub python: String,
    pub num_workers: usize,
    /// Of one call.
    pub timeout: Duration,
    /// Of loading the code.
    pub start_timeout: Duration,
    /// Memory that each process may allocate, in MiB.
    pub memory_limit_mb: Option<u64>,
    /// Seconds of processor time of one call.
    pub cpu_limit: Option<u64>,
    /// Environment variables that workers get beside the usual ones.
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

/// How a function wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// verl's reward manager: one response, by keyword or in order.
    Verl,
    /// verl's batch manager.
    VerlBatch,
    /// TRL's reward functions, which see a batch.
    Trl,
    /// OpenRLHF's `reward_func`.
    OpenRlhf,
    /// Functions of [`Source::BuiltIn`].
    Plain,
}

/// A function that workers offer.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub style: Style,
    /// The arguments it takes; `None` for any.
    pub columns: Option<Vec<String>>,
    /// Columns of the data set that it cannot do without.
    pub wants: Vec<String>,
}

impl Signature {
    /// As a worker writes it; `None` for anything else.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let style = match value["style"].as_str()? {
            "verl" | "verl_positional" => Style::Verl,
            "verl_batch" => Style::VerlBatch,
            "trl" => Style::Trl,
            "openrlhf" => Style::OpenRlhf,
            "plain" => Style::Plain,
            _ => return None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let names = |names: &Vec<Value>| names.iter().filter_map(text).collect();
        let columns = value["columns"].as_array().map(names);
        let wants = value["wants"].as_array().map(names).unwrap_or_default();
        Some(Self { name: text(&value["name"])?, style, columns, wants })
    }
}
