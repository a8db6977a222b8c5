//! The inside of a step, for `trainer replay`: its samples token by token, their gradients, and the size of its update.
//!
//! A run has no probe, and then a step computes nothing for it. A probe only reads: the step has the same bits with it.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};

use burnish_model::Gradients;
use burnish_optim::LayerChange;

/// Collects what a step shows. Pipelines find it in [`Context`](super::Context).
#[derive(Debug, Default)]
pub struct StepProbe(Mutex<ProbedStep>);

/// A step, as a probe saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbedStep {
    pub samples: Vec<ProbedSample>,
    /// Size of all updates of the step.
    pub layers: Vec<LayerChange>,
}

/// One trajectory or example of a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbedSample {
    /// Position in the batch, from 0.
    pub sample: usize,
    /// Position of its row in the training files, from 0.
    pub row: usize,
    #[serde(with = "burnish_util::json_number")]
    pub score: Option<f64>,
    /// Score of each reward function, if there are several.
    pub components: Map<String, Value>,
    pub ground_truth: Value,
    pub data_source: String,
    /// Reason why the response ended; empty for a given text.
    pub finish: String,
    /// Part in the gradient of each update that read the sample.
    pub gradients: Vec<SampleGradient>,
    /// Sequences of the sample: one response, a pair of them, or packed documents.
    pub texts: Vec<ProbedText>,
}

/// A sequence of a sample. Columns have one value per token of the response.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbedText {
    pub prompt: String,
    pub response: String,
    pub tokens: Vec<String>,
    /// 1 for a token that the loss may read, otherwise 0.
    pub mask: Vec<u8>,
    /// log π of generation; `None` for a given text.
    #[serde(with = "burnish_util::json_number")]
    pub generated_log_prob: Option<Vec<f32>>,
    #[serde(with = "burnish_util::json_number")]
    pub advantage: Option<Vec<f32>>,
    /// The columns at each update that read the sample, before the update.
    pub updates: Vec<TokenColumns>,
}

/// Values of the tokens of a sequence at one update.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokenColumns {
    /// Number of the update in the step, from 1.
    pub update: usize,
    #[serde(with = "burnish_util::json_number")]
    pub log_prob: Vec<f32>,
    #[serde(with = "burnish_util::json_number")]
    pub entropy: Vec<f32>,
    /// π / π_old; `None` without an old policy. 1 where the old policy is the present one.
    #[serde(with = "burnish_util::json_number")]
    pub ratio: Option<Vec<f32>>,
    /// 1 for a token with an advantage and a weight, but without a slope of the policy loss; otherwise 0.
    pub clipped: Option<Vec<u8>>,
}

/// The part of a sample in the gradient of an update, before clipping.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SampleGradient {
    /// Number of the update in the step, from 1.
    pub update: usize,
    /// ‖gᵢ‖, where gᵢ is the gradient of the sample's own terms in the loss of the mini-batch.
    #[serde(with = "burnish_util::json_number")]
    pub norm: f64,
    /// ⟨gᵢ, g⟩ / ‖g‖², where g = Σ gᵢ is the gradient of the update. The shares of an update add up to 1.
    #[serde(with = "burnish_util::json_number")]
    pub share: Option<f64>,
}

impl SampleGradient {
    /// Measures the gradient of a sample. `whole`: the gradient of the update, if it is known here.
    pub fn measure(update: usize, own: &Gradients, whole: Option<&Gradients>) -> Self {
        let share = whole.map(|whole| own.dot(whole) / whole.dot(whole));
        Self { update, norm: own.norm(), share: share.filter(|share| share.is_finite()) }
    }
}

impl StepProbe {
    /// Lets a phase of the step add its part.
    pub fn look(&self, add: impl FnOnce(&mut ProbedStep)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the inside of the step.
    pub(super) fn into_step(self) -> ProbedStep {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
