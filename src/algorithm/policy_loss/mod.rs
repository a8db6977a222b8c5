//! Policy losses: the loss of each token as a formula on small tensors, differentiable in `log_prob`.
//!
//! One file per loss and one line in [`POLICY_LOSSES`]. A loss sees whole sequences, never a model; how tokens are averaged
//! is not its business but that of [`super::aggregate`].

mod vanilla;

use burn::tensor::Tensor;

/// One micro-batch of whole sequences; tensors have shape `[tokens]`. Entries where the mask is 0 hold 0.
pub struct LossInput<'a> {
    /// log π of the current policy, the only input with a gradient.
    pub log_prob: Tensor<1>,
    /// log π of the policy the advantages belong to.
    pub old_log_prob: Tensor<1>,
    pub advantages: Tensor<1>,
    pub mask: Tensor<1>,
    /// Sequence boundaries, for losses that work on whole responses.
    pub offsets: &'a [usize],
    /// Importance weights that correct for the policy of the rollout engine.
    pub rollout_is_weights: Option<Tensor<1>>,
    pub clip: ClipOptions,
}

/// The clip range of the probability ratio ρ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipOptions {
    /// ρ is clipped below 1 − low (`actor.clip_ratio_low`).
    pub low: f64,
    /// ρ is clipped above 1 + high (`actor.clip_ratio_high`).
    pub high: f64,
    /// The most a token with negative advantage can cost, in units of |A|; above 1 (`actor.clip_ratio_c`).
    pub c: f64,
}

/// A mean over tokens, kept as its parts: adding both over micro-batches before dividing gives the exact mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub sum: f64,
    pub count: f64,
}

/// The loss of each token, shape `[tokens]`, and means over the trained ones.
pub struct PolicyLossOutput {
    pub per_token: Tensor<1>,
    pub metrics: Vec<Metric>,
}

/// A row of [`POLICY_LOSSES`].
pub struct PolicyLoss {
    /// The value of `actor.policy_loss.loss_mode`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    pub run: fn(&LossInput) -> PolicyLossOutput,
}

/// Every loss `actor.policy_loss.loss_mode` can name.
pub static POLICY_LOSSES: &[PolicyLoss] = &[vanilla::LOSS];

/// The loss of this name or alias.
pub fn find(name: &str) -> Option<&'static PolicyLoss> {
    POLICY_LOSSES.iter().find(|l| l.name == name || l.aliases.contains(&name))
}

/// All names, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    POLICY_LOSSES.iter().map(|l| l.name).collect()
}
