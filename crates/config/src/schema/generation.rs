//! Responses to the prompts of a file. Meaning and defaults: `config/generation.yaml`.

use super::agent::{AgentConfig, AgentKeys};
use super::data::{OnMalformedRow, Truncation};
use super::loadable::Schema;
use super::multi_turn::MultiTurnConfig;
use super::place::Place;
use super::reward::ProcessKeys;
use super::sampling::sampling_keys;
use super::types::{Device, Dtype, Location, OneOrMany, Open};
use super::validate::{lengths, stop_strings, template_date};
use super::validate_agent;
use crate::{Kind, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

impl Schema for GenerationConfig {
    const KIND: Kind = Kind::Generation;

    fn places(&mut self) -> Vec<Place<'_>> {
        self.all_places()
    }

    fn validate(&self, report: &mut Report) {
        self.check(report);
    }
}

/// Everything that `trainer generate` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationConfig {
    pub data: GenerationDataConfig,
    pub model: GenerationModelConfig,
    pub rollout: GenerationRolloutConfig,
    pub reward: GenerationRewardConfig,
    pub trainer: GenerationTrainerConfig,
}

/// The prompts, and where the responses go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationDataConfig {
    pub path: OneOrMany<Location>,
    pub prompt_key: String,
    pub n_samples: usize,
    pub output_path: Location,
    pub batch_size: usize,
    pub on_malformed_row: OnMalformedRow,
    pub truncation: Truncation,
    pub apply_chat_template_kwargs: Open,
    pub chat_template_date: Option<String>,
}

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationModelConfig {
    pub path: Location,
    pub dtype: Dtype,
    pub tokenizer_path: Option<Location>,
    pub custom_chat_template: Option<String>,
}

/// The generation of the responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationRolloutConfig {
    pub do_sample: bool,
    pub temperature: f64,
    pub top_k: i64,
    pub top_p: f64,
    pub min_p: f64,
    pub repetition_penalty: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    pub logit_bias: Option<BTreeMap<String, f64>>,
    pub bad_words: Option<Vec<String>>,
    pub allowed_token_ids: Option<Vec<u32>>,
    pub prompt_length: usize,
    pub response_length: usize,
    pub ignore_eos: bool,
    pub stop_token_ids: Vec<u32>,
    pub stop: Vec<String>,
    pub min_tokens: usize,
    pub max_num_seqs: usize,
    pub max_num_batched_tokens: usize,
    pub max_model_len: Option<usize>,
    pub enforce_eager: bool,
    pub multi_turn: MultiTurnConfig,
    pub agent: AgentConfig,
}

sampling_keys!(GenerationRolloutConfig);

impl GenerationRolloutConfig {
    /// The settings of conversations.
    pub fn conversations(&self) -> AgentKeys<'_> {
        AgentKeys { group: "rollout", multi_turn: &self.multi_turn, agent: &self.agent }
    }
}

/// The processes of users' Python code: tools, users and environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationRewardConfig {
    pub start_timeout: f64,
    pub python: Location,
    pub pass_env: Vec<String>,
    pub cpu_limit: Option<u64>,
}

impl GenerationRewardConfig {
    /// The processes of users' Python code.
    pub fn process(&self) -> ProcessKeys<'_> {
        let Self { python, start_timeout, pass_env, cpu_limit } = self;
        ProcessKeys { python, start_timeout: *start_timeout, pass_env, cpu_limit: *cpu_limit }
    }
}

/// Device and seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationTrainerConfig {
    pub device: Device,
    pub seed: u64,
}

impl GenerationConfig {
    /// Checks the rules that the types cannot express.
    pub(super) fn check(&self, report: &mut Report) {
        let (data, rollout) = (&self.data, &self.rollout);
        let longest = (rollout.prompt_length, rollout.response_length);
        lengths("rollout", longest, rollout.min_tokens, rollout.max_model_len, report);
        stop_strings("rollout.stop", &rollout.stop, report);
        rollout.token_rules().check("rollout", report);
        validate_agent::agent(&rollout.conversations(), report);
        template_date(data.chat_template_date.as_deref(), report);
        let samples = data.n_samples;
        for (greedy, key, help) in [
            (!rollout.do_sample, "rollout.do_sample", "write data.n_samples=1, or rollout.do_sample=true"),
            (rollout.temperature == 0.0, "rollout.temperature", "write data.n_samples=1, or a rollout.temperature above 0"),
        ] {
            if greedy && samples > 1 {
                let message = format!("the {samples} responses to a prompt (`data.n_samples`) are all the same without sampling");
                report.wrong(key, message, help);
            }
        }
        if data.output_path.as_path().extension().is_none_or(|extension| extension != "parquet") {
            let message = format!("`data.output_path` must end in .parquet, not {}", data.output_path);
            report.wrong("data.output_path", message, "");
        }
    }
}
