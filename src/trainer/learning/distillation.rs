//! On-policy distillation (verl's `distillation`): a teacher judges the tokens that the policy sampled. Its loss is added to the
//! loss of the rewards or replaces it. The loss either goes back through the policy, or becomes the advantages of a clipped
//! policy loss.
//!
//! Both models divide their logits by `rollout.temperature`; verl divides only the policy's.

use super::self_teacher::{TeacherModel, TeacherPrompts};
use super::totals::Totals;
use burnish_algorithm::kl::KlPenalty;
use burnish_algorithm::loss::{LossColumns, LossResult, PolicyObjective};
use burnish_algorithm::options::Options;
use burnish_algorithm::policy_loss::Metric;
use burnish_algorithm::teacher_loss::{TeacherColumns, TeacherLoss, importance_weights};
use burnish_algorithm::top_k_divergence;
use burnish_config::schema::LossSupport;
use burnish_model::{CausalLm, ComparisonTarget, Divergence, Sequence, SparseMeasure, TokenStats, TopK};

/// The teacher and the loss.
pub struct Distillation {
    pub teacher: TeacherModel,
    /// Prompts of a teacher that is shown more than the policy.
    pub prompts: Option<TeacherPrompts>,
    pub measure: TeacherMeasure,
    /// Factor of the loss when added to the loss of the rewards; `None` if it replaces that loss.
    pub(crate) with_rewards: Option<f64>,
    /// True if the teacher is a term of the advantages, and not a loss.
    pub in_advantages: bool,
    pub loss_max_clamp: Option<f32>,
    /// Upper bound of the importance weight π/π_old of each token's loss.
    pub is_clip: Option<f64>,
    /// Clipped policy loss that takes the distillation loss as advantages.
    pub(crate) policy_gradient: Option<PolicyObjective>,
}

/// The measure of the difference between policy and teacher at a token.
pub enum TeacherMeasure {
    /// Compares only the sampled token.
    Sampled(KlPenalty),
    /// Over the vocabulary.
    Whole(Divergence),
    /// Over the teacher's top-k tokens.
    TopK { k: usize, min: Option<f32> },
    /// Over the k most probable tokens of one of the models or of both, as a divergence.
    Support { k: usize, beta: f64, add_tail: bool, of: LossSupport },
    /// A loss of the sampled token that is a policy gradient.
    Own(&'static TeacherLoss, Options),
}

/// Inputs of the loss for a micro-batch.
pub(super) struct TeacherLossInputs<'a> {
    pub columns: LossColumns<'a>,
    pub(crate) teacher_log_prob: Option<&'a [f32]>,
    pub(crate) rollout_log_prob: &'a [f32],
}

impl<'a> TeacherLossInputs<'a> {
    /// # Panics
    /// If no pass has computed them.
    fn teacher(&self) -> &'a [f32] {
        self.teacher_log_prob.expect("the phase `teacher` writes them")
    }
}

impl Distillation {
    /// Returns true if the loss reads the teacher's log-probs of the sampled tokens, from a pass before the update.
    pub fn passes_before(&self) -> bool {
        matches!(self.measure, TeacherMeasure::Sampled(_) | TeacherMeasure::Own(..))
    }

    /// Returns the tokens that the loss compares at each token of a micro-batch, with the teacher's log-probabilities of them, if it
    /// does not compare the whole vocabulary. The most probable tokens of the policy cost a pass of the policy.
    pub(super) fn top_k(
        &self,
        policy: &CausalLm,
        sequences: &[Sequence],
        of_teacher: &[Sequence],
        temperature: f32,
    ) -> Option<TopK> {
        let teacher = self.teacher.get(policy).inference();
        let vocabulary = policy.config.vocab_size.min(teacher.config.vocab_size);
        let judged = of_teacher;
        let of_teacher = |k: usize| teacher.top_k(judged, temperature, k, vocabulary);
        let of_policy = |k: usize| policy.inference().top_k(sequences, temperature, k, vocabulary);
        let entries = match self.measure {
            TeacherMeasure::TopK { k, .. } => return Some(of_teacher(k)),
            TeacherMeasure::Support { k, of: LossSupport::Teacher, .. } => return Some(of_teacher(k)),
            TeacherMeasure::Support { k, of: LossSupport::Student, .. } => of_policy(k),
            TeacherMeasure::Support { k, of: LossSupport::Both | LossSupport::Auto, .. } => of_teacher(k).union(&of_policy(k)),
            TeacherMeasure::Sampled(_) | TeacherMeasure::Own(..) | TeacherMeasure::Whole(_) => return None,
        };
        Some(teacher.log_probs_of(&entries, judged, temperature, vocabulary))
    }

    /// Returns the comparison for the policy's head. `tokens`: from [`Self::top_k`].
    pub(super) fn comparison<'a>(&'a self, tokens: Option<&'a TopK>, teacher: &'a CausalLm) -> Option<ComparisonTarget<'a>> {
        match (&self.measure, tokens) {
            (TeacherMeasure::Whole(divergence), _) => Some(ComparisonTarget::Model(teacher, *divergence)),
            (TeacherMeasure::TopK { min, .. }, Some(teacher)) => {
                Some(ComparisonTarget::TopK { teacher, measure: SparseMeasure::Sum { min: *min } })
            }
            (TeacherMeasure::Support { beta, add_tail, .. }, Some(teacher)) => {
                let measure = SparseMeasure::Divergence { beta: *beta, add_tail: *add_tail };
                Some(ComparisonTarget::TopK { teacher, measure })
            }
            _ => None,
        }
    }

    /// Returns the loss of a micro-batch: the sum with the loss of the rewards, or its replacement.
    pub(super) fn combine(
        &self,
        rewards: LossResult,
        x: &TeacherLossInputs,
        stats: &TokenStats,
        totals: &mut Totals,
    ) -> LossResult {
        let mut distances = self.distances(x, stats);
        self.report(&distances, x.columns.mask, stats, totals);
        if let (Some(max), Some(old)) = (self.is_clip, x.columns.old_log_prob) {
            let weights = importance_weights(x.columns.log_prob, old, max);
            for column in [&mut distances.values, &mut distances.slopes] {
                column.iter_mut().zip(&weights).for_each(|(x, weight)| *x *= weight);
            }
        }
        let own = self.loss(&distances, &x.columns);
        let term = ("distillation/loss", own.loss);
        let mut result = match self.with_rewards {
            Some(coef) => sum(rewards, coef, own),
            // The loss of the rewards contributes only the entropy, as a metric.
            None => LossResult { terms: rewards.terms.into_iter().filter(|(name, _)| *name == "actor/entropy").collect(), ..own },
        };
        result.terms.push(term);
        result
    }

    /// Reports metrics of the trained tokens, before the loss is clamped.
    fn report(&self, Distances { values, reports, .. }: &Distances, mask: &[f32], stats: &TokenStats, totals: &mut Totals) {
        let trained =
            |column: &[f32]| -> Vec<f32> { column.iter().zip(mask).filter(|(_, m)| **m != 0.0).map(|(&x, _)| x).collect() };
        totals.add_range("distillation/loss", &trained(values));
        for (name, column) in reports {
            totals.add_metrics(&[mean(name, trained(column).into_iter())]);
            totals.add_range(name, &trained(column));
        }
        if self.passes_before() {
            totals.add_metrics(&[mean("distillation/abs_loss", trained(values).into_iter().map(f32::abs))]);
        }
        let (TeacherMeasure::TopK { k, .. } | TeacherMeasure::Support { k, .. }) = self.measure else { return };
        let top = &stats.top_k;
        for (name, column) in [("distillation/student_mass", &top.student_mass), ("distillation/teacher_mass", &top.teacher_mass)]
        {
            totals.add_metrics(&[mean(name, trained(column).into_iter())]);
            totals.add_range(name, &trained(column));
        }
        let (overlap, advantage) = (trained(&top.overlap), trained(&top.overlap_advantage));
        let overlapping = overlap.iter().zip(advantage).filter(|(overlap, _)| **overlap > 0.0).map(|(_, advantage)| advantage);
        totals.add_metrics(&[
            mean("distillation/overlap_ratio", overlap.iter().map(|overlap| overlap / k as f32)),
            mean("distillation/overlap_token_advantage", overlapping),
        ]);
    }

    /// Returns only the distillation loss.
    fn loss(&self, Distances { values, slopes, .. }: &Distances, x: &LossColumns) -> LossResult {
        let (max, weights) = (self.loss_max_clamp.unwrap_or(f32::INFINITY), x.penalty_weights);
        let clamped: Vec<f32> = values.iter().map(|x| x.clamp(-max, max)).collect();
        if let Some(objective) = &self.policy_gradient {
            let advantages: Vec<f32> = clamped.iter().map(|x| -x).collect();
            // The mask of the rewards' loss excludes tokens of low entropy; the teacher judges all tokens.
            let mut loss = objective.evaluate(&LossColumns {
                advantages: &advantages,
                weights,
                entropy_mask: None,
                entropy_bonus: None,
                ..*x
            });
            for metric in &mut loss.metrics {
                if let Some(name) = renamed(&metric.name) {
                    metric.name = name.into();
                }
            }
            return loss;
        }
        // A masked token may have any value, even NaN, which a weight of 0 would not remove.
        let of_trained = |i: usize, value: f32| if x.mask[i] == 0.0 { 0.0 } else { f64::from(value) * f64::from(weights[i]) };
        let loss = clamped.iter().enumerate().map(|(i, &value)| of_trained(i, value)).sum();
        let slope = |i: usize| if values[i].abs() <= max { of_trained(i, slopes[i]) as f32 } else { 0.0 };
        let (d, nothing): (Vec<f32>, _) = ((0..values.len()).map(slope).collect(), vec![0.0; values.len()]);
        let (d_log_prob, d_full_kl) = if self.passes_before() { (d, vec![]) } else { (nothing.clone(), d) };
        LossResult { loss, d_log_prob, d_entropy: nothing, d_full_kl, ..LossResult::default() }
    }

    /// Returns the measure at every token, and its derivative by log π(token) or by the divergence of the head.
    fn distances(&self, x: &TeacherLossInputs, stats: &TokenStats) -> Distances {
        match &self.measure {
            TeacherMeasure::Sampled(penalty) => {
                let (values, slopes) = penalty.with_slopes(x.columns.log_prob, x.teacher());
                Distances { values, slopes, reports: vec![] }
            }
            TeacherMeasure::Own(loss, options) => {
                let LossColumns { offsets, mask, log_prob, .. } = x.columns;
                let (rollout_log_prob, teacher_log_prob) = (x.rollout_log_prob, x.teacher());
                let own = (loss.run)(&TeacherColumns { offsets, mask, log_prob, rollout_log_prob, teacher_log_prob }, options);
                Distances { values: own.values, slopes: own.slopes, reports: own.reports }
            }
            TeacherMeasure::Whole(_) | TeacherMeasure::Support { .. } => {
                Distances { values: stats.full_kl.clone(), slopes: vec![1.0; stats.full_kl.len()], reports: vec![] }
            }
            TeacherMeasure::TopK { .. } => {
                let (values, slopes) = top_k_divergence::bounded(&stats.full_kl);
                Distances { values, slopes, reports: vec![] }
            }
        }
    }
}

/// The measure at every token, its slope, and further columns that are reported.
struct Distances {
    values: Vec<f32>,
    slopes: Vec<f32>,
    reports: Vec<(&'static str, Vec<f32>)>,
}

/// Adds `coef` times another loss to the loss of the rewards.
fn sum(mut rewards: LossResult, coef: f64, own: LossResult) -> LossResult {
    let scaled = |d: &f32| (coef * f64::from(*d)) as f32;
    rewards.loss += coef * own.loss;
    rewards.d_log_prob.iter_mut().zip(&own.d_log_prob).for_each(|(sum, d)| *sum += scaled(d));
    // Only one of the two losses compares with another distribution in the head.
    if !own.d_full_kl.is_empty() {
        rewards.d_full_kl = own.d_full_kl.iter().map(scaled).collect();
    }
    rewards.metrics.extend(own.metrics);
    rewards
}

fn mean(name: &'static str, values: impl Iterator<Item = f32>) -> Metric {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|x| (sum, count) = (sum + f64::from(x), count + 1.0));
    Metric { name: name.into(), sum, count }
}

/// Returns verl's name, for this loss, of a metric of the clipped policy loss.
fn renamed(name: &str) -> Option<&'static str> {
    match name {
        "actor/pg_clipfrac" => Some("distillation/pg_clipfrac"),
        "actor/pg_clipfrac_lower" => Some("distillation/pg_clipfrac_lower"),
        "actor/ppo_kl" => Some("distillation/ppo_kl"),
        _ => None,
    }
}
