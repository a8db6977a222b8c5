//! Reward models. Meaning and defaults: `config/rm_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::CheckpointConfig;
use super::loadable::Schema;
use super::location_setting::LocationSetting;
use super::optim::StageOptimConfig;
use super::stage::{self, StageConfig, StageKeys, StageModelConfig, StageTrainerConfig, StageTruncation, stage_data};
use super::types::{OneOrMany, choices};
use crate::{Kind, Report};

/// The configuration of `trainer rm`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmConfig {
    pub data: RmDataConfig,
    pub model: StageModelConfig,
    pub algorithm: RmAlgorithmConfig,
    pub optim: StageOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: StageTrainerConfig,
}

stage_data! {
    /// The examples.
    RmDataConfig {
        prompt_key: Option<String>,
        chosen_key: String,
        rejected_key: String,
        margin_key: Option<String>,
        chat_template_kwargs_key: String,
        completions_key: String,
        labels_key: String,
        step_separator: String,
        train_on_last_step_only: bool,
        placeholder_token: Option<String>,
        input_key: String,
    }
}

/// The loss, and the head that is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RmAlgorithmConfig {
    pub loss_type: String,
    pub center_rewards_coefficient: Option<f64>,
    pub reward_tokens: Option<OneOrMany<String>>,
    pub init_head: InitHead,
}

choices! {
    /// The initialisation of a head that replaces a language model's head.
    pub enum InitHead {
        /// N(0, initializer_range)
        Normal = "normal",
        /// N(0, 1 / (hidden_size + 1))
        Scaled = "scaled",
        Zeros = "zeros",
    }
}

impl StageConfig for RmConfig {
    const NAME: &'static str = "rm";

    fn stage(&self) -> StageKeys<'_> {
        let Self { data, model, optim, checkpoint, trainer, algorithm: _ } = self;
        StageKeys { data: data.stage(), model, optim, checkpoint, trainer }
    }
}

impl Schema for RmConfig {
    const KIND: Kind = Kind::Rm;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        stage::locations(&mut self.model, &mut self.data.train_files, &mut self.data.val_files)
    }

    fn validate(&self, report: &mut Report) {
        stage::validate(self.stage(), report);
        let (data, algorithm) = (&self.data, &self.algorithm);
        // The name of the only loss for steps. The registry of losses is in a higher crate.
        let steps = algorithm.loss_type == "cross_entropy";
        if steps && [StageTruncation::Filter, StageTruncation::Left].contains(&data.truncation) {
            let message =
                format!("`data.truncation` is {}, but a text with steps is cut at its end or refused", data.truncation.as_str());
            report.wrong("data.truncation", message, "write data.truncation=right or error");
        }
        if steps && data.placeholder_token.is_none() && data.prompt_key.is_none() {
            let message = "`data.prompt_key` is null, but steps follow a prompt";
            report.wrong("data.prompt_key", message, "write data.prompt_key=prompt");
        }
        if steps && data.placeholder_token.is_none() && data.step_separator.is_empty() {
            let message = "`data.step_separator` is empty, but each step is judged after it";
            report.wrong("data.step_separator", message, "write data.step_separator='\"\\n\"'");
        }
        let tokens = algorithm.reward_tokens.as_ref().map(|tokens| tokens.0.len());
        if tokens.is_some_and(|tokens| tokens < 2) {
            let message = "`algorithm.reward_tokens` needs two tokens or more";
            report.wrong("algorithm.reward_tokens", message, "write algorithm.reward_tokens=['+','-']");
        }
    }
}
