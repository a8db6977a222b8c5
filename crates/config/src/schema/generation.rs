//! Responses to the prompts of a file. Meaning and defaults: `config/generation.yaml`.

use super::agent::{AgentConfig, AgentKeys};
use super::data::{DataTruncation, OnMalformedRow};
use super::loadable::Schema;
use super::location_setting::LocationSetting;
use super::multi_turn::MultiTurnConfig;
use super::reward::ProcessKeys;
use super::sampling::sampling_keys;
use super::types::{Device, Dtype, Location, OneOrMany, OpenMapping};
use super::validate_agent;
use super::validate_data::{template_date, text_prompts};
use super::validate_rollout::{lengths, stop_strings};
use crate::{Kind, Report};
use serde::{Deserialize, Serialize};

impl Schema for GenerationConfig {
    const KIND: Kind = Kind::Generation;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        self.all_locations()
    }

    fn validate(&self, report: &mut Report) {
        self.check(report);
    }
}

/// The configuration of `trainer generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationConfig {
    pub data: GenerationDataConfig,
    pub model: GenerationModelConfig,
    pub rollout: GenerationRolloutConfig,
    pub reward: GenerationRewardConfig,
    pub trainer: GenerationTrainerConfig,
}

/// The prompts, and the file of the responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationDataConfig {
    pub path: OneOrMany<Location>,
    pub prompt_key: String,
    pub apply_chat_template: bool,
    pub input_template: Option<String>,
    pub n_samples: usize,
    pub output_path: Location,
    pub batch_size: usize,
    pub on_malformed_row: OnMalformedRow,
    pub truncation: DataTruncation,
    pub apply_chat_template_kwargs: OpenMapping,
    pub chat_template_date: Option<String>,
}

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationModelConfig {
    pub path: Location,
    pub override_config: OpenMapping,
    pub dtype: Dtype,
    pub tokenizer_path: Option<Location>,
    pub custom_chat_template: Option<String>,
}

sampling_keys! {
    /// The generation of the responses.
    GenerationRolloutConfig
    {}
    {
        multi_turn: MultiTurnConfig,
        agent: AgentConfig,
    }
}

impl GenerationRolloutConfig {
    /// Returns the settings of conversations.
    pub fn conversations(&self) -> AgentKeys<'_> {
        AgentKeys { group: "rollout", multi_turn: &self.multi_turn, agent: &self.agent }
    }
}

/// Processes of users' Python code: tools, users and environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationRewardConfig {
    pub start_timeout: f64,
    pub python: Location,
    pub pass_env: Vec<String>,
    pub cpu_limit: Option<u64>,
}

impl GenerationRewardConfig {
    /// Returns the settings of processes with users' Python code.
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
        text_prompts(data.input_template.as_deref(), data.apply_chat_template, report);
        let samples = data.n_samples;
        for (greedy, key, help) in [
            (!rollout.do_sample, "rollout.do_sample", "write data.n_samples=1, or rollout.do_sample=true"),
            (rollout.temperature == 0.0, "rollout.temperature", "write data.n_samples=1, or a rollout.temperature above 0"),
        ] {
            if greedy && samples > 1 {
                let message =
                    format!("without sampling, the {samples} responses to a prompt (`data.n_samples`) are all the same");
                report.wrong(key, message, help);
            }
        }
        if data.output_path.as_path().extension().is_none_or(|extension| extension != "parquet") {
            let message = format!("`data.output_path` must end in .parquet, not {}", data.output_path);
            report.wrong("data.output_path", message, "");
        }
    }
}
