//! Supervised fine-tuning. Meaning and defaults: `config/sft_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::CheckpointConfig;
use super::loadable::Schema;
use super::optim::StageOptimConfig;
use super::place::Place;
use super::stage::{self, StageConfig, StageKeys, StageModelConfig, StageTrainerConfig, StageTruncation, stage_data};
use super::types::OneOrMany;
use crate::config::{Kind, Report};

/// Everything that `trainer sft` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    pub data: SftDataConfig,
    pub model: StageModelConfig,
    pub algorithm: SftAlgorithmConfig,
    pub optim: StageOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: StageTrainerConfig,
}

stage_data! {
    /// The examples.
    SftDataConfig {
        messages_key: Option<String>,
        prompt_key: String,
        response_key: String,
        prompt_dict_keys: Option<OneOrMany<String>>,
        response_dict_keys: Option<OneOrMany<String>>,
    }
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftAlgorithmConfig {
    pub loss_type: String,
    pub label_smoothing: f64,
    pub neftune_noise_alpha: Option<f64>,
}

impl StageConfig for SftConfig {
    const NAME: &'static str = "sft";

    fn stage(&self) -> StageKeys<'_> {
        let Self { data, model, algorithm: _, optim, checkpoint, trainer } = self;
        StageKeys { data: data.stage(), model, optim, checkpoint, trainer }
    }
}

impl Schema for SftConfig {
    const KIND: Kind = Kind::Sft;

    fn places(&mut self) -> Vec<Place<'_>> {
        stage::places(&mut self.model, &mut self.data.train_files, &mut self.data.val_files)
    }

    fn validate(&self, report: &mut Report) {
        stage::validate(self.stage(), report);
        if self.data.truncation == StageTruncation::Filter {
            report.wrong(
                "data.truncation",
                "supervised examples that are too long are cut or refused",
                "use error, left or right",
            );
        }
    }
}
