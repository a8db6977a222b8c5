//! A reward function of a run, with its weight and the way in which it is called.

use std::sync::Arc;

use anyhow::Result;

use super::score::Score;
use super::score_input::{BatchJudge, Judge, ScoreInput};

/// A reward function that is a plain Rust function.
pub(crate) type Rule = fn(&ScoreInput) -> Result<Score>;

/// Time and place at which a reward function is called.
#[derive(Clone)]
pub enum Runs {
    /// In this process, as soon as the response ends.
    Rule(Rule),
    /// In this process, once the reward model's score is known.
    Late(Rule),
    /// Outside this process, for one response.
    Each(Arc<dyn Judge>),
    /// For all responses of a batch, once the last of them is complete.
    Together(Arc<dyn BatchJudge>),
}

/// A reward function of a run.
#[derive(Clone)]
pub struct Reward {
    pub name: String,
    pub weight: f64,
    pub settings: Vec<(&'static str, f64)>,
    /// Tag that a response must begin with; see [`Function::opens`](super::Function::opens).
    pub opens: Option<&'static str>,
    pub check: Check,
    pub runs: Runs,
}

/// A reward function's check of a row: fails if the function could not score any response to the row.
pub(crate) type Check = Arc<dyn Fn(&ScoreInput) -> Result<()> + Send + Sync>;

impl Reward {
    /// Creates a reward function with weight 1 and no settings that accepts every row.
    pub fn new(name: &str, runs: Runs) -> Self {
        Self { name: name.to_owned(), weight: 1.0, settings: Vec::new(), opens: None, check: Arc::new(|_| Ok(())), runs }
    }
}

/// Treatment of a response that a reward function fails to score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OnError {
    /// The run ends with an error.
    #[default]
    Error,
    /// The function abstains from the response.
    Abstain,
    /// The response gets this reward from the function.
    Value(f32),
}
