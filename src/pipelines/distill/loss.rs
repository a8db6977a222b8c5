//! The loss of distillation.

use serde::{Deserialize, Serialize};

use super::example::DistillExample;
use super::teacher::Teacher;
use crate::pipelines::sft;
use crate::pipelines::stage::{Measured, StageBatch};
use burnish_algorithm::top_k_divergence;
use burnish_config::schema::{DistillAlgorithmConfig, DistillDivergence};
use burnish_model::token_stats::TokenGrads;
use burnish_model::{CausalLm, ComparisonTarget, Divergence, Gradients, SparseMeasure, TokenStats};
use burnish_tracking::Metrics;

/// The two parts of the loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct KdLoss {
    pub divergence: Divergence,
    pub temperature: f32,
    kd_coef: f64,
    pub min: Option<f32>,
    /// The divergence on the most probable tokens (`loss_top_k`); `None` for the whole vocabulary or the teacher's stored tokens.
    sparse: Option<SparseMeasure>,
}

impl KdLoss {
    /// Returns the loss; `None` for a teacher with other tokens.
    pub(super) fn from_config(algorithm: &DistillAlgorithmConfig) -> Option<Self> {
        let divergence = match algorithm.loss_type {
            DistillDivergence::ForwardKl => Divergence::ForwardKl,
            DistillDivergence::ReverseKl => Divergence::ReverseKl,
            DistillDivergence::CrossEntropy => Divergence::CrossEntropy,
            DistillDivergence::Jsd => Divergence::jsd(algorithm.beta),
            DistillDivergence::Uld => return None,
        };
        let min = algorithm.log_prob_min_clamp.map(|min| min as f32);
        let add_tail = algorithm.loss_add_tail;
        let sparse = algorithm.support().map(|(beta, _)| SparseMeasure::Divergence { beta, add_tail });
        Some(Self { divergence, temperature: algorithm.temperature as f32, kd_coef: algorithm.kd_coef, min, sparse })
    }

    /// Returns the passes over a micro-batch: one for both parts, or one for each if the divergence has a temperature other than
    /// the likelihood's.
    fn parts(self) -> Vec<Part> {
        let (nll, kd) = (1.0 - self.kd_coef, self.kd_coef);
        let part = |temperature, nll, kd| Part { temperature, nll, kd, bounded: self.sparse.is_none() };
        match (nll > 0.0, kd > 0.0) {
            (true, true) if self.temperature != 1.0 => vec![part(1.0, Some(nll), None), part(self.temperature, None, Some(kd))],
            (_, true) if self.temperature == 1.0 => vec![part(1.0, Some(nll), Some(kd))],
            (_, true) => vec![part(self.temperature, None, Some(kd))],
            (_, false) => vec![part(1.0, Some(nll), None)],
        }
    }
}

/// A pass, with the weights of the parts of the loss that it computes.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub temperature: f32,
    pub nll: Option<f64>,
    pub kd: Option<f64>,
    /// True if a divergence over some tokens may be negative, and counts as 0 then.
    pub bounded: bool,
}

impl Part {
    /// Returns the gradient of every token. `k`: the top-k of a teacher whose other tokens are unknown.
    pub(super) fn token_grads(self, weights: &[f64], stats: &TokenStats, k: Option<usize>) -> TokenGrads {
        let (_, slopes) = divergences(stats, k.filter(|_| self.bounded));
        let of_likelihood = |share: f64| weights.iter().map(|weight| (-share * weight) as f32).collect();
        let of_divergence = |share: f64| {
            let each = weights.iter().zip(&slopes).map(|(weight, &slope)| (share * weight * f64::from(slope)) as f32);
            each.collect::<Vec<f32>>()
        };
        TokenGrads {
            log_prob: of_likelihood(self.nll.unwrap_or(0.0)),
            entropy: vec![0.0; weights.len()],
            full_kl: self.kd.map_or_else(Vec::new, of_divergence),
        }
    }
}

/// Returns the divergence of every token, and its slope by the output of the head.
fn divergences(stats: &TokenStats, k: Option<usize>) -> (Vec<f32>, Vec<f32>) {
    match k {
        Some(_) => top_k_divergence::bounded(&stats.full_kl),
        None => (stats.full_kl.clone(), vec![1.0; stats.full_kl.len()]),
    }
}

/// Sums over the trained tokens of a slice, each with its weight.
#[derive(Default, Serialize, Deserialize)]
pub struct DistillSums {
    loss: f64,
    nll: Option<f64>,
    divergence: Option<f64>,
    entropy: f64,
    /// The number of trained tokens that are the student's most probable token, and of all trained tokens, in each pass.
    right: usize,
    trained: usize,
    /// Student mass, teacher mass and overlap with a teacher of k tokens.
    top_k: Option<[f64; 3]>,
}

/// Passes over a slice, with gradients if requested. `of_all`: the sum of the weights of the whole batch.
pub(super) fn pass(
    loss: &KdLoss,
    teacher: Option<&Teacher>,
    batch: &StageBatch<DistillExample>,
    of_all: f64,
    slice: &[usize],
    model: &CausalLm,
    mut gradients: Option<&mut Gradients>,
) -> DistillSums {
    // Index of the first row among the teacher's stored examples.
    let offset = if batch.training { 0 } else { teacher.map_or(0, Teacher::training_examples) };
    let mut sums = DistillSums::default();
    for micro in batch.micro_batches(slice) {
        let of_micro = batch.sequences_of(&micro);
        let weights = micro.iter().flat_map(|&i| sft::weights(&batch.examples[i].student));
        let weights: Vec<f64> = weights.map(|weight| f64::from(weight) / of_all).collect();
        let share = batch.share_of(&micro);
        let places: Vec<usize> = micro.iter().map(|&i| offset + batch.rows[i]).collect();
        for (index, part) in loss.parts().into_iter().enumerate() {
            let tokens = teacher
                .filter(|_| part.kd.is_some())
                .and_then(|teacher| teacher.tokens(&of_micro, &places, model, part.temperature));
            let comparison = match (&tokens, teacher) {
                _ if part.kd.is_none() => None,
                (Some(teacher), _) => {
                    Some(ComparisonTarget::TopK { teacher, measure: loss.sparse.unwrap_or(SparseMeasure::Sum { min: loss.min }) })
                }
                (None, teacher) => teacher.and_then(Teacher::model).map(|model| ComparisonTarget::Model(model, loss.divergence)),
            };
            let k = tokens.as_ref().map(|top| top.k);
            match gradients.as_deref_mut() {
                None => sums.add(part, &weights, &model.token_stats(&of_micro, part.temperature, comparison), k),
                // The losses of routers count once.
                Some(gradients) => model.with_routers(if index == 0 { share } else { 0.0 }).backward(
                    &of_micro,
                    part.temperature,
                    comparison,
                    gradients,
                    |stats| {
                        sums.add(part, &weights, stats, k);
                        part.token_grads(&weights, stats, k)
                    },
                ),
            }
        }
    }
    sums
}

impl DistillSums {
    pub(super) fn add(&mut self, part: Part, weights: &[f64], stats: &TokenStats, k: Option<usize>) {
        // The value of an untrained token may be NaN, which a weight of 0 would not remove.
        let sum = |column: &[f32]| -> f64 {
            column.iter().zip(weights).filter(|(_, weight)| **weight != 0.0).map(|(&x, weight)| f64::from(x) * weight).sum()
        };
        if let Some(share) = part.nll {
            let nll = -sum(&stats.log_prob);
            self.loss += share * nll;
            *self.nll.get_or_insert(0.0) += nll;
        }
        if let Some(share) = part.kd {
            let divergence = sum(&divergences(stats, k.filter(|_| part.bounded)).0);
            self.loss += share * divergence;
            *self.divergence.get_or_insert(0.0) += divergence;
        }
        for (is_top1, _) in stats.is_top1.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
            self.right += usize::from(*is_top1);
            self.trained += 1;
        }
        if part.temperature == 1.0 {
            self.entropy += sum(&stats.entropy);
        }
        if let (Some(k), Some(_)) = (k, part.kd) {
            let top = &stats.top_k;
            let all = self.top_k.get_or_insert_default();
            for (total, x) in all.iter_mut().zip([sum(&top.student_mass), sum(&top.teacher_mass), sum(&top.overlap) / k as f64]) {
                *total += x;
            }
        }
    }

    /// Adds a distance of `value`, which has this weight in the loss.
    pub(super) fn add_distance(&mut self, weight: f64, value: f64) {
        self.loss += weight * value;
        *self.divergence.get_or_insert(0.0) += value;
    }

    /// Adds the sums of both; values that neither has are left out.
    pub(super) fn and(self, other: Self) -> Self {
        let sum = |own: Option<f64>, other: Option<f64>| own.into_iter().chain(other).reduce(|own, other| own + other);
        let pairs = |own: [f64; 3], other: [f64; 3]| std::array::from_fn(|i| own[i] + other[i]);
        Self {
            loss: self.loss + other.loss,
            nll: sum(self.nll, other.nll),
            divergence: sum(self.divergence, other.divergence),
            entropy: self.entropy + other.entropy,
            right: self.right + other.right,
            trained: self.trained + other.trained,
            top_k: self.top_k.into_iter().chain(other.top_k).reduce(pairs),
        }
    }

    /// Returns the means over the batch.
    pub(super) fn measured(self) -> Measured {
        let mut metrics = Metrics::default();
        let accuracy = (self.trained > 0).then(|| self.right as f64 / self.trained as f64);
        let parts = [
            ("nll_loss", self.nll),
            ("distil_loss", self.divergence),
            ("entropy", self.nll.map(|_| self.entropy)),
            ("mean_token_accuracy", accuracy),
        ];
        let [student, teacher, overlap] = self.top_k.map_or([None; 3], |all| all.map(Some));
        let top_k = [("student_mass", student), ("teacher_mass", teacher), ("overlap_ratio", overlap)];
        for (name, value) in parts.into_iter().chain(top_k) {
            if let Some(value) = value {
                metrics.set(name, value);
            }
        }
        Measured { loss: self.loss, metrics }
    }
}

impl KdLoss {
    /// Describes the loss for users.
    pub(super) fn describe(&self) -> String {
        if self.kd_coef == 0.0 {
            return "NLL".to_owned();
        }
        let name = match self.divergence {
            Divergence::ForwardKl => "KL(teacher ‖ student)".to_owned(),
            Divergence::ReverseKl => "KL(student ‖ teacher)".to_owned(),
            Divergence::CrossEntropy => "cross-entropy of the student under the teacher".to_owned(),
            Divergence::Jsd { beta } => format!("Jensen-Shannon divergence with β {beta}"),
        };
        format!("{}·({name} at temperature {}) + {}·NLL", self.kd_coef, self.temperature, 1.0 - self.kd_coef)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the teacher's top-k tokens, a token whose sum is below 0 has no loss and no gradient. A whole distribution is used
    /// unchanged, and NaN at a trained token is detected.
    #[test]
    fn only_sums_over_some_tokens_are_bounded_by_zero() {
        let stats = TokenStats { full_kl: vec![-0.5, 0.25, f32::NAN], ..TokenStats::default() };
        let part = Part { temperature: 1.0, nll: None, kd: Some(0.5), bounded: true };
        let weights = [0.5, 0.25, 0.0];
        let loss = |weights: &[f64], k| {
            let mut sums = DistillSums::default();
            sums.add(part, weights, &stats, k);
            (sums.loss, sums.divergence.unwrap())
        };
        for (k, divergence, slope) in [(Some(2), 0.0625, 0.0), (None, -0.1875, 0.25)] {
            assert_eq!(loss(&weights, k), (0.5 * divergence, divergence), "k {k:?}");
            assert_eq!(part.token_grads(&weights, &stats, k).full_kl, [slope, 0.125, 0.0], "k {k:?}");
            assert!(loss(&[0.0, 0.0, 1.0], k).0.is_nan(), "k {k:?}");
        }
    }
}
