//! `data.*`: the prompts. Meaning and defaults: `config/data/legacy_data.yaml`.

use super::types::{Location, OneOrMany, OpenMapping, choices, files_or_none};
use serde::{Deserialize, Serialize};

/// The source of the prompts, and their maximum lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    pub tokenizer: Option<Location>,
    pub train_files: OneOrMany<Location>,
    /// `None`: the run does not validate.
    #[serde(deserialize_with = "files_or_none")]
    pub val_files: Option<OneOrMany<Location>>,
    pub train_max_samples: i64,
    pub val_max_samples: i64,
    pub prompt_key: String,
    pub apply_chat_template: bool,
    pub input_template: Option<String>,
    pub label_key: Option<String>,
    pub reward_fn_key: Option<String>,
    pub max_prompt_length: usize,
    pub max_response_length: usize,
    pub train_batch_size: usize,
    pub gen_batch_size: Option<usize>,
    pub val_batch_size: Option<usize>,
    pub shuffle: bool,
    pub validation_shuffle: bool,
    pub seed: Option<u64>,
    pub filter_overlong_prompts: bool,
    pub on_malformed_row: OnMalformedRow,
    pub truncation: DataTruncation,
    pub apply_chat_template_kwargs: OpenMapping,
    pub chat_template_date: Option<String>,
}

choices! {
    /// The treatment of a row that cannot be read.
    pub enum OnMalformedRow {
        Error = "error",
        /// The row is dropped and counted.
        Skip = "skip",
    }
}

choices! {
    /// The treatment of a prompt or an example that is too long.
    pub enum DataTruncation {
        Error = "error",
        Left = "left",
        Right = "right",
        /// The first and the last half of the maximum length are kept.
        Middle = "middle",
    }
}
