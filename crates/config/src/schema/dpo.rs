//! Preference optimisation. Meaning and defaults: `config/dpo_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::{CheckpointConfig, RefModelConfig};
use super::loadable::Schema;
use super::location_setting::{LocationKind, LocationSetting};
use super::location_settings::one;
use super::optim::StageOptimConfig;
use super::stage::{self, StageConfig, StageKeys, StageModelConfig, StageTrainerConfig, stage_data};
use super::types::{Location, OneOrMany, choices};
use crate::{Kind, Report};

/// The configuration of `trainer dpo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpoConfig {
    pub data: DpoDataConfig,
    pub model: StageModelConfig,
    #[serde(rename = "ref")]
    pub reference: DpoRefConfig,
    pub algorithm: DpoAlgorithmConfig,
    pub optim: StageOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: StageTrainerConfig,
}

stage_data! {
    /// The examples.
    DpoDataConfig {
        prompt_key: Option<String>,
        chosen_key: String,
        rejected_key: String,
        reference_key: String,
        completion_key: String,
        label_key: String,
        chat_template_kwargs_key: String,
    }
}

/// The reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpoRefConfig {
    pub model: RefModelConfig,
    pub precompute_log_prob: bool,
    pub log_prob_path: Option<Location>,
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpoAlgorithmConfig {
    pub loss_type: OneOrMany<String>,
    pub loss_weights: Option<Vec<f64>>,
    pub beta: f64,
    pub label_smoothing: f64,
    pub f_divergence_type: FDivergenceType,
    pub f_alpha_divergence_coef: f64,
    pub ld_alpha: Option<f64>,
    pub use_weighting: bool,
    pub nll_loss_coef: Option<f64>,
    pub discopop_tau: f64,
    pub simpo_gamma: f64,
    pub cpo_alpha: f64,
    pub tpo_alpha: f64,
    pub tpo_l_gamma: f64,
    pub alpha: f64,
    pub desirable_weight: f64,
    pub undesirable_weight: f64,
}

choices! {
    /// The divergence that keeps the policy close to the reference.
    pub enum FDivergenceType {
        ReverseKl = "reverse_kl",
        ForwardKl = "forward_kl",
        JsDivergence = "js_divergence",
        AlphaDivergence = "alpha_divergence",
    }
}

impl StageConfig for DpoConfig {
    const NAME: &'static str = "dpo";

    fn stage(&self) -> StageKeys<'_> {
        let Self { data, model, optim, checkpoint, trainer, reference: _, algorithm: _ } = self;
        StageKeys { data: data.stage(), model, optim, checkpoint, trainer }
    }
}

impl Schema for DpoConfig {
    const KIND: Kind = Kind::Dpo;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        let weights = LocationKind::Model { weights: true };
        let reference = one("ref.model.path", weights, &mut self.reference.model.path);
        let own = stage::locations(&mut self.model, &mut self.data.train_files, &mut self.data.val_files);
        own.into_iter().chain(reference).collect()
    }

    fn validate(&self, report: &mut Report) {
        stage::validate(self.stage(), report);
        let Some(weights) = &self.algorithm.loss_weights else { return };
        let (losses, count) = (self.algorithm.loss_type.0.len(), weights.len());
        if count != losses {
            let message = format!("`algorithm.loss_weights` has {count} numbers, but `algorithm.loss_type` has {losses} names");
            report.wrong("algorithm.loss_weights", message, "write one number for each name, or null");
        } else if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) || weights.iter().sum::<f64>() == 0.0 {
            let message = format!("`algorithm.loss_weights` is {weights:?}: weights must be 0 or more, and at least one above 0");
            report.wrong("algorithm.loss_weights", message, "write numbers that are 0 or more, one of them above 0");
        }
    }
}
