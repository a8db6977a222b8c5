//! The entry of a loss of the sampled tokens under a teacher.

use crate::options::Options;

/// One micro-batch of whole sequences, one value per response token; values of masked tokens are not read.
#[derive(Clone, Copy, Debug)]
pub struct TeacherColumns<'a> {
    pub offsets: &'a [usize],
    pub mask: &'a [f32],
    /// log π of the current policy, in nats, as all log-probabilities.
    pub log_prob: &'a [f32],
    /// log π of the policy that generated.
    pub rollout_log_prob: &'a [f32],
    /// log T of the teacher.
    pub teacher_log_prob: &'a [f32],
}

impl TeacherColumns<'_> {
    /// Returns the values of a trained token: log π, log π_rollout, log T.
    pub(super) fn at(&self, token: usize) -> [f64; 3] {
        [self.log_prob, self.rollout_log_prob, self.teacher_log_prob].map(|column| f64::from(column[token]))
    }

    /// Computes value and slope of every trained token; 0 for others.
    pub(super) fn each(&self, of: impl Fn(usize) -> (f64, f64)) -> (Vec<f32>, Vec<f32>) {
        let token = |t: usize| if self.mask[t] == 0.0 { (0.0, 0.0) } else { of(t) };
        (0..self.mask.len()).map(token).map(|(value, slope)| (value as f32, slope as f32)).unzip()
    }
}

/// The loss of every token, and what is reported of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeacherLossOutput {
    pub values: Vec<f32>,
    /// d value / d log π.
    pub slopes: Vec<f32>,
    /// Columns whose mean, minimum and maximum over trained tokens are reported.
    pub reports: Vec<(&'static str, Vec<f32>)>,
}

/// A row of [`TEACHER_LOSSES`](super::TEACHER_LOSSES).
pub struct TeacherLoss {
    /// A value of `distillation.distillation_loss.loss_mode`.
    pub name: &'static str,
    /// The documentation, in the format of [`Estimator::doc`](crate::advantage::Estimator::doc).
    pub doc: &'static str,
    /// The settings that the loss reads, as full keys.
    pub reads: &'static [&'static str],
    pub run: fn(&TeacherColumns, &Options) -> TeacherLossOutput,
}

/// Returns min(π/π_old, max) of every token, without gradient: the importance weights of a loss whose tokens are a few updates old.
/// The log-ratio is held within ±20.
pub fn importance_weights(log_prob: &[f32], old_log_prob: &[f32], max: f64) -> Vec<f32> {
    let weight = |(x, old): (&f32, &f32)| (f64::from(*x) - f64::from(*old)).clamp(-20.0, 20.0).exp().min(max) as f32;
    log_prob.iter().zip(old_log_prob).map(weight).collect()
}
