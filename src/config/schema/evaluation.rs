//! Scores of the responses in a file. Meaning and defaults: `config/evaluation.yaml`.

use super::types::{Location, OneOrMany};
use serde::{Deserialize, Serialize};

/// Everything that `trainer eval` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalConfig {
    pub data: EvalDataConfig,
}

/// The responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalDataConfig {
    pub path: OneOrMany<Location>,
    pub response_key: String,
    pub data_source_key: String,
    pub reward_model_key: String,
}
