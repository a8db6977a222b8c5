//! samples.jsonl: responses, token by token, for `trainer report`.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_util::jsonl::StepLog;

/// The file, in the folder of the run.
pub const SAMPLES: &str = "samples.jsonl";

/// A response with its score, advantages and log-probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub step: u64,
    /// `train` or `val`.
    pub kind: String,
    pub prompt: String,
    pub response: String,
    /// The score; `None` where every reward function abstained.
    #[serde(with = "burnish_util::json_number")]
    pub score: Option<f64>,
    /// The mean advantage of the tokens that are trained on; `None` in validation.
    #[serde(with = "burnish_util::json_number")]
    pub advantage: Option<f64>,
    pub ground_truth: Value,
    pub data_source: String,
    /// The score of each reward function, if there are several: a number or null ([`burnish_util::json_number`]).
    pub components: Map<String, Value>,
    /// The reason why the response ended: `stop` or `length`.
    pub finish: String,
    /// The tokens of the response, each as its text.
    pub tokens: Vec<String>,
    /// log π of each token.
    #[serde(with = "burnish_util::json_number")]
    pub log_probs: Vec<f32>,
    /// The advantage of each token.
    #[serde(with = "burnish_util::json_number")]
    pub advantages: Option<Vec<f32>>,
    /// What only a conversation of many turns has.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub talk: Option<Talk>,
}

/// A conversation of many turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Talk {
    /// All messages, those of the prompt first.
    pub messages: Vec<Value>,
    /// The number of the prompt's messages.
    pub asked: usize,
    /// The reason why the conversation ended, such as `answer`.
    pub end: String,
    pub num_turns: usize,
    /// For each token of the response, 1 if the model sampled it, 0 if a tool, a user or an environment said it.
    pub sampled: Vec<u8>,
}

/// The open samples file of an active run.
#[derive(Debug)]
pub struct Samples(StepLog);

impl Samples {
    /// Opens the file; see [`StepLog::open`].
    ///
    /// # Errors
    /// If the file cannot be opened or written.
    pub fn open(dir: &Path, resumed_step: Option<u64>) -> Result<Self> {
        Ok(Self(StepLog::open(&dir.join(SAMPLES), resumed_step)?))
    }

    /// Adds the samples of a step.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, samples: &[Sample]) -> Result<()> {
        samples.iter().try_for_each(|sample| self.0.append(&serde_json::to_string(sample)?))
    }
}
