//! The entry of a policy loss: its input, its output and its description.

use std::borrow::Cow;

use burn::tensor::Tensor;

use super::super::aggregate::{self, Aggregation};
use super::super::column::{Segments, masked_sum};
use super::super::options::{OptionValue, Options};
use super::super::rollout_correction::{BypassLoss, RolloutCorrection};
use burnish_registry::{Need, Refusal, When};

/// The bound of log-ratios, so that e^Δ, and a gradient's square, stay finite. verl and OpenRLHF use the same.
pub(super) const MAX_LOG_RATIO: f64 = 20.0;

/// One micro-batch of whole sequences; tensors have shape `[tokens]`. Entries where the mask is 0 hold 0.
pub struct LossInput<'a> {
    /// log π of the current policy, the only input with a gradient.
    pub log_prob: Tensor<1>,
    /// log π of the policy that the ratio compares with: the policy before the update, or the policy that generated (bypass mode,
    /// [`Need::Rollout`] and [`ANCHOR`]).
    pub old_log_prob: Tensor<1>,
    pub advantages: Tensor<1>,
    pub mask: Tensor<1>,
    /// Sequence boundaries, for losses that work on whole responses (see `column::Segments`).
    pub offsets: &'a [usize],
    /// Importance weights that correct for the policy of the rollout engine, if there are any.
    pub rollout_is_weights: Option<Tensor<1>>,
    /// This micro-batch's part of the result of [`PolicyLoss::prepare`]; present if the loss has that function.
    pub factor: Option<Tensor<1>>,
    pub options: &'a LossOptions,
}

impl LossInput<'_> {
    /// Returns log π − log π_old of each token, unbounded.
    pub(super) fn difference(&self) -> Tensor<1> {
        self.log_prob.clone() - self.old_log_prob.clone()
    }

    /// Returns Δ, which is log π − log π_old of each token, clamped to ±[`MAX_LOG_RATIO`]; ρ is e^Δ.
    pub(crate) fn log_ratio(&self) -> Tensor<1> {
        self.difference().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    }

    /// Clamps ρ to the clip range.
    pub(super) fn clip(&self, ratio: Tensor<1>) -> Tensor<1> {
        let (low, high) = self.options.clip_range();
        ratio.clamp(1.0 - low, 1.0 + high)
    }

    /// Returns the mean over the trained tokens of each sequence, for each of its tokens; 0 without trained tokens.
    pub(crate) fn sequence_mean(&self, tokens: Tensor<1>) -> Tensor<1> {
        let segments = Segments::new(self.offsets, &tokens.device());
        let lengths = segments.sum(self.mask.clone()).clamp_min(1.0);
        segments.spread(segments.sum(tokens * self.mask.clone()) / lengths)
    }

    /// Returns the loss times the importance weights, if there are any.
    pub(super) fn weighted(&self, per_token: Tensor<1>) -> Tensor<1> {
        match &self.rollout_is_weights {
            Some(weights) => per_token * weights.clone(),
            None => per_token,
        }
    }

    /// Returns the mean of a value over the trained tokens.
    pub(super) fn mean(&self, name: &'static str, values: Tensor<1>) -> Metric {
        Metric { name: name.into(), sum: masked_sum(values, &self.mask), count: masked_sum(self.mask.clone(), &self.mask) }
    }

    /// Returns a metric of 0, which verl reports for this loss too although it has no meaning.
    pub(super) fn zero(&self, name: &'static str) -> Metric {
        self.mean(name, self.mask.zeros_like())
    }
}

/// The keys of [`LossOptions::clip_range`].
pub(super) const CLIP_RANGE: [&str; 3] =
    ["actor_rollout_ref.actor.clip_ratio", "actor_rollout_ref.actor.clip_ratio_low", "actor_rollout_ref.actor.clip_ratio_high"];

/// The setting of losses that can take the ratio to the policy that generated instead of the policy before the update.
pub const ANCHOR: &str = "actor_rollout_ref.actor.policy_loss.anchor";

/// The refusal of losses whose ratio is already the ratio to the policy that generated.
pub(super) const NO_TOKEN_WEIGHTS: &[Refusal] = &[Refusal {
    key: "algorithm.rollout_correction.rollout_is",
    when: When::On,
    why: "`NAME` takes its ratio to the policy that generated, and importance weights would correct for the difference twice",
    instead: "write KEY=null, or a loss_mode such as cispo",
}];

/// The settings of a loss.
#[derive(Clone, Debug)]
pub struct LossOptions {
    /// The settings that the loss names in its `reads`.
    pub settings: Options,
    /// The correction that `bypass_mode` computes inside the loss.
    pub rollout_correction: Option<RolloutCorrection>,
    /// The loss that `bypass_mode` computes.
    pub bypass_loss: BypassLoss,
}

impl LossOptions {
    /// Returns the settings of a loss that is not `bypass_mode`.
    pub fn new(settings: Options) -> Self {
        Self { settings, rollout_correction: None, bypass_loss: BypassLoss::PpoClip }
    }

    /// Returns the settings with another value of one of them, see [`Options::with`].
    pub fn with(self, name: &str, value: impl Into<OptionValue>) -> Self {
        Self { settings: self.settings.with(name, value), ..self }
    }

    /// Returns a number, see [`Options::number`].
    pub(super) fn number(&self, name: &str) -> f64 {
        self.settings.number(name)
    }

    /// Returns a number that may be unset, see [`Options::optional`].
    pub(super) fn optional(&self, name: &str) -> Option<f64> {
        self.settings.optional(name)
    }

    /// Returns (low, high): ρ is clipped below 1 − low and above 1 + high. Each is `clip_ratio` if it is unset.
    pub(super) fn clip_range(&self) -> (f64, f64) {
        let side = |name: &str| self.optional(name).unwrap_or_else(|| self.number("clip_ratio"));
        (side("clip_ratio_low"), side("clip_ratio_high"))
    }
}

/// A mean over tokens, kept as its parts: adding both over micro-batches before dividing gives the exact mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: Cow<'static, str>,
    pub sum: f64,
    pub count: f64,
}

/// The loss of each token, shape `[tokens]`, and means over the trained ones.
pub struct PolicyLossOutput {
    pub per_token: Tensor<1>,
    pub metrics: Vec<Metric>,
}

/// A whole mini-batch as ragged columns on the host; values of masked tokens are not read.
#[derive(Clone, Copy, Debug)]
pub struct MiniBatch<'a> {
    pub offsets: &'a [usize],
    pub mask: &'a [f32],
    /// log π under the current policy, followed by its entropy.
    pub log_prob: &'a [f32],
    pub entropy: &'a [f32],
    /// log π under the old policy, as in [`LossInput`]; equal to `log_prob` in the on-policy case.
    pub old_log_prob: &'a [f32],
    pub advantages: &'a [f32],
    /// log π under the reference, if the run has a reference.
    pub ref_log_prob: Option<&'a [f32]>,
    /// The prompt that each sequence answers: an index that the responses to one prompt share.
    pub groups: &'a [usize],
    pub options: &'a LossOptions,
}

/// The factors that a loss computed from a whole mini-batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// One value per token, [`LossInput::factor`].
    pub factor: Vec<f32>,
    /// Named values of the mini-batch; the trainer averages them over updates.
    pub metrics: Vec<(String, f64)>,
}

/// Computes the factors that depend on the whole mini-batch; the second argument draws uniformly from [0, 1).
pub type Prepare = fn(&MiniBatch, &mut dyn FnMut() -> f64) -> Prepared;

/// A row of [`POLICY_LOSSES`](super::POLICY_LOSSES).
pub struct PolicyLoss {
    /// The value of `actor.policy_loss.loss_mode`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The documentation of the entry, in the format of [`Estimator::doc`](crate::advantage::Estimator::doc).
    pub doc: &'static str,
    /// The aggregation that the loss is defined with, which replaces `actor.loss_agg_mode`.
    pub aggregation: Option<&'static str>,
    pub prepare: Option<Prepare>,
    /// The things that a run must provide for the entry.
    pub needs: &'static [Need],
    /// The settings that the entry reads, as full keys; their values are in [`LossInput::options`].
    pub reads: &'static [&'static str],
    /// The settings that cannot be combined with the entry.
    pub refuses: &'static [Refusal],
    /// The switch that chooses the loss and overrides `loss_mode`.
    pub chosen_by: Option<&'static str>,
    pub run: fn(&LossInput) -> PolicyLossOutput,
}

impl PolicyLoss {
    /// Returns the aggregation of the loss; `configured` is the value of `actor.loss_agg_mode`.
    pub fn aggregation(&self, configured: &'static Aggregation) -> &'static Aggregation {
        self.aggregation.and_then(aggregate::find).unwrap_or(configured)
    }
}
