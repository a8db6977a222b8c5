//! `reward_model.*`, `reward.*` and `custom_reward_function.*`. Meaning and defaults: `config/reward_model/`, `config/reward/`,
//! `config/custom_reward_function/`.

use super::types::{Dtype, Location, ModelInit, OneOrMany, OpenMapping, choices};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The reward functions, their manager and a reward model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelConfig {
    pub enable: bool,
    pub model: RewardModelModelConfig,
    pub micro_batch_size_per_gpu: usize,
    pub use_dynamic_bsz: bool,
    pub forward_max_token_len_per_gpu: usize,
    pub max_length: Option<usize>,
    pub step_score: StepScoreName,
    pub step_separator: String,
    pub placeholder_token: Option<String>,
    pub reward_tokens: Option<OneOrMany<String>>,
    pub reward_manager: Option<RewardManager>,
    pub reward_kwargs: RewardKwargsConfig,
    pub remote_url: Option<OneOrMany<String>>,
    pub reward_functions: Option<OneOrMany<String>>,
    pub reward_weights: Option<Vec<f64>>,
}

choices! {
    /// The score of a text whose steps a process reward model judges.
    pub enum StepScoreName {
        /// The worst step.
        Min = "min",
        Last = "last",
        Mean = "mean",
        /// The product of the steps.
        Prod = "prod",
    }
}

/// The name of the reward model among the reward functions.
pub const REWARD_MODEL: &str = "reward_model";

/// The name of `reward_model.remote_url` among the reward functions.
pub const REMOTE: &str = "remote";

choices! {
    /// The reward manager, which computes the score of a response.
    pub enum RewardManager {
        Naive = "naive",
        Dapo = "dapo",
        Prime = "prime",
        Batch = "batch",
        Gdpo = "gdpo",
    }
}

/// Settings of the reward manager `dapo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardKwargsConfig {
    pub max_resp_len: usize,
    pub overlong_buffer_cfg: OverlongBufferConfig,
}

/// The soft penalty for overlong responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlongBufferConfig {
    pub enable: bool,
    pub len: usize,
    pub penalty_factor: f64,
    pub log: bool,
}

/// The reward model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelModelConfig {
    pub input_tokenizer: Option<Location>,
    pub path: Option<Location>,
    pub init: ModelInit,
    pub dtype: Dtype,
}

/// The user's own reward functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomRewardFunctionConfig {
    pub path: Option<Location>,
    pub name: OneOrMany<String>,
    pub reward_kwargs: OpenMapping,
}

/// The execution of reward functions: concurrency, limits and failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardConfig {
    pub num_workers: usize,
    pub timeout: f64,
    pub start_timeout: f64,
    pub on_error: OnRewardError,
    pub error_value: f64,
    pub python: Location,
    pub pass_env: Vec<String>,
    pub memory_limit_mb: Option<u64>,
    pub cpu_limit: Option<u64>,
    pub remote_retries: usize,
    pub remote_token_env: Option<String>,
    pub function_kwargs: BTreeMap<String, BTreeMap<String, FunctionNumber>>,
    pub sandbox_fusion: SandboxFusionConfig,
}

/// A setting of a reward function: a number, or true and false as 1 and 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FunctionNumber(pub f64);

impl<'de> Deserialize<'de> for FunctionNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads;

        impl Visitor<'_> for Reads {
            type Value = FunctionNumber;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, true or false")
            }

            fn visit_bool<E>(self, value: bool) -> Result<FunctionNumber, E> {
                Ok(FunctionNumber(f64::from(u8::from(value))))
            }

            fn visit_i64<E>(self, value: i64) -> Result<FunctionNumber, E> {
                Ok(FunctionNumber(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<FunctionNumber, E> {
                Ok(FunctionNumber(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<FunctionNumber, E> {
                Ok(FunctionNumber(value))
            }
        }

        deserializer.deserialize_any(Reads)
    }
}

/// Settings of processes with users' Python code, in this group and in the group of `trainer generate`.
#[derive(Debug, Clone, Copy)]
pub struct ProcessKeys<'a> {
    pub python: &'a Location,
    /// Seconds.
    pub start_timeout: f64,
    pub pass_env: &'a [String],
    /// Seconds.
    pub cpu_limit: Option<u64>,
}

impl RewardConfig {
    /// Returns the settings of processes with users' Python code.
    pub fn process(&self) -> ProcessKeys<'_> {
        let Self { python, start_timeout, pass_env, cpu_limit, .. } = self;
        ProcessKeys { python, start_timeout: *start_timeout, pass_env, cpu_limit: *cpu_limit }
    }
}

choices! {
    /// The treatment of a response that a reward function fails to score.
    pub enum OnRewardError {
        Error = "error",
        Abstain = "abstain",
        Value = "value",
    }
}

/// The service that runs code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxFusionConfig {
    pub url: Option<String>,
    pub max_concurrent: usize,
    pub memory_limit_mb: u64,
}

/// The settings that make up a score, in a run or for responses in a file.
pub struct RewardKeys<'a> {
    pub custom: &'a CustomRewardFunctionConfig,
    pub reward: &'a RewardConfig,
    /// The reward manager; `None` for configurations without this setting.
    pub manager: Option<RewardManager>,
    /// True if this process has a reward model; `None` for configurations without this setting.
    pub model: Option<bool>,
    pub remote_url: Option<&'a OneOrMany<String>>,
    pub reward_functions: Option<&'a OneOrMany<String>>,
    pub reward_weights: Option<&'a [f64]>,
}

impl RewardKeys<'_> {
    /// Returns the names of the reward functions that make up the score.
    pub fn functions(&self) -> Vec<String> {
        match self.reward_functions {
            Some(names) => names.to_vec(),
            None => self.chosen(),
        }
    }

    /// Returns the reward functions that other settings add, or else the scorer of the data source.
    pub fn chosen(&self) -> Vec<String> {
        let mut names = if self.custom.path.is_some() { self.custom.name.to_vec() } else { Vec::new() };
        names.extend((self.model == Some(true)).then(|| REWARD_MODEL.to_owned()));
        names.extend(self.remote_url.map(|_| REMOTE.to_owned()));
        if names.is_empty() { vec!["data_source".to_owned()] } else { names }
    }

    /// Returns the URLs of the reward servers; one text may hold several, separated by commas.
    pub fn remote_urls(&self) -> Vec<String> {
        let urls = self.remote_url.iter().flat_map(|urls| urls.iter()).flat_map(|url| url.split(','));
        urls.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()).collect()
    }
}
