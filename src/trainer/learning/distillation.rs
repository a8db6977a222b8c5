//! On-policy distillation: a teacher judges the tokens that the policy sampled. Its loss stands beside that of the rewards or in its
//! place, and goes back through the policy, or becomes the advantages of a clipped policy loss (verl's `distillation`).
//!
//! Both models divide their logits by `rollout.temperature`; verl divides the policy's alone.

use super::totals::Totals;
use burnish_algorithm::kl::KlPenalty;
use burnish_algorithm::loss::{LossColumns, LossResult, PolicyObjective};
use burnish_algorithm::policy_loss::Metric;
use burnish_algorithm::top_k_divergence;
use burnish_model::{CausalLm, Comparison, Divergence, Sequence, TokenStats, TopK};

/// The teacher and the loss.
pub struct Distillation {
    pub teacher: CausalLm,
    pub measure: Measure,
    /// The factor of the loss beside that of the rewards; `None` where it stands alone.
    pub beside_rewards: Option<f64>,
    pub loss_max_clamp: Option<f32>,
    /// The clipped policy loss that takes the loss for advantages.
    pub policy_gradient: Option<PolicyObjective>,
}

/// How far the policy is from the teacher at a token.
pub enum Measure {
    /// By the sampled token alone.
    Sampled(KlPenalty),
    /// Over the vocabulary.
    Whole(Divergence),
    /// Over the teacher's k most likely tokens.
    TopK { k: usize, least: Option<f32> },
}

/// The numbers of a micro-batch that the loss reads.
pub(super) struct Judged<'a> {
    pub columns: LossColumns<'a>,
    pub teacher_log_prob: Option<&'a [f32]>,
}

impl Distillation {
    /// True if the loss reads the teacher's log-probabilities of the sampled tokens, from a pass before the update.
    pub fn passes_before(&self) -> bool {
        matches!(self.measure, Measure::Sampled(_))
    }

    /// The teacher's most likely tokens of a micro-batch, where the loss reads these.
    pub(super) fn top_k(&self, policy: &CausalLm, sequences: &[Sequence], temperature: f32) -> Option<TopK> {
        let Measure::TopK { k, .. } = self.measure else { return None };
        let vocabulary = policy.config.vocab_size.min(self.teacher.config.vocab_size);
        Some(self.teacher.top_k(sequences, temperature, k, vocabulary))
    }

    /// What the policy is compared with in the head; `tokens`: of [`Self::top_k`].
    pub(super) fn comparison<'a>(&'a self, tokens: Option<&'a TopK>) -> Option<Comparison<'a>> {
        match (&self.measure, tokens) {
            (Measure::Whole(divergence), _) => Some(Comparison::Model(&self.teacher, *divergence)),
            (Measure::TopK { least, .. }, Some(teacher)) => Some(Comparison::TopK { teacher, least: *least }),
            _ => None,
        }
    }

    /// The loss of a micro-batch, with that of the rewards or in its place.
    pub(super) fn beside(&self, rewards: LossResult, x: &Judged, stats: &TokenStats, totals: &mut Totals) -> LossResult {
        let distances = self.distances(x, stats);
        self.report(&distances.values, x.columns.mask, stats, totals);
        let own = self.loss(&distances, &x.columns);
        let term = ("distillation/loss", own.loss);
        let mut result = match self.beside_rewards {
            Some(coef) => sum(rewards, coef, own),
            // Of the loss of the rewards the entropy stays, which is only measured.
            None => LossResult { terms: rewards.terms.into_iter().filter(|(name, _)| *name == "actor/entropy").collect(), ..own },
        };
        result.terms.push(term);
        result
    }

    /// Metrics of the trained tokens, before the loss is clamped.
    fn report(&self, values: &[f32], mask: &[f32], stats: &TokenStats, totals: &mut Totals) {
        let trained =
            |column: &[f32]| -> Vec<f32> { column.iter().zip(mask).filter(|(_, m)| **m != 0.0).map(|(&x, _)| x).collect() };
        totals.add_range("distillation/loss", &trained(values));
        if self.passes_before() {
            totals.add_metrics(&[mean("distillation/abs_loss", trained(values).into_iter().map(f32::abs))]);
        }
        let Measure::TopK { k, .. } = self.measure else { return };
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

    /// The loss by itself.
    fn loss(&self, Distances { values, slopes }: &Distances, x: &LossColumns) -> LossResult {
        let (most, weights) = (self.loss_max_clamp.unwrap_or(f32::INFINITY), x.penalty_weights);
        let clamped: Vec<f32> = values.iter().map(|x| x.clamp(-most, most)).collect();
        if let Some(objective) = &self.policy_gradient {
            let advantages: Vec<f32> = clamped.iter().map(|x| -x).collect();
            // The mask of the rewards' loss leaves out tokens of low entropy; the teacher judges all.
            let mut loss = objective.evaluate(&LossColumns { advantages: &advantages, weights, entropy_mask: None, ..*x });
            loss.metrics.iter_mut().for_each(|metric| metric.name = renamed(metric.name));
            return loss;
        }
        // The number of a masked token may be anything, even NaN, which a weight of 0 would not remove.
        let of_trained = |i: usize, value: f32| if x.mask[i] == 0.0 { 0.0 } else { f64::from(value) * f64::from(weights[i]) };
        let loss = clamped.iter().enumerate().map(|(i, &value)| of_trained(i, value)).sum();
        let slope = |i: usize| if values[i].abs() <= most { of_trained(i, slopes[i]) as f32 } else { 0.0 };
        let (d, nothing): (Vec<f32>, _) = ((0..values.len()).map(slope).collect(), vec![0.0; values.len()]);
        let (d_log_prob, d_full_kl) = if self.passes_before() { (d, vec![]) } else { (nothing.clone(), d) };
        LossResult { loss, d_log_prob, d_entropy: nothing, d_full_kl, ..LossResult::default() }
    }

    /// The measure at every token, and its derivative by log π(token) or by the divergence of the head.
    fn distances(&self, x: &Judged, stats: &TokenStats) -> Distances {
        match &self.measure {
            Measure::Sampled(penalty) => {
                let teacher = x.teacher_log_prob.expect("the phase `teacher` writes them");
                let (values, slopes) = penalty.with_slopes(x.columns.log_prob, teacher);
                Distances { values, slopes }
            }
            Measure::Whole(_) => Distances { values: stats.full_kl.clone(), slopes: vec![1.0; stats.full_kl.len()] },
            Measure::TopK { .. } => {
                let (values, slopes) = top_k_divergence::bounded(&stats.full_kl);
                Distances { values, slopes }
            }
        }
    }
}

/// The measure at every token, and its slope.
struct Distances {
    values: Vec<f32>,
    slopes: Vec<f32>,
}

/// The loss of the rewards and `coef` times another.
fn sum(mut rewards: LossResult, coef: f64, own: LossResult) -> LossResult {
    let scaled = |d: &f32| (coef * f64::from(*d)) as f32;
    rewards.loss += coef * own.loss;
    rewards.d_log_prob.iter_mut().zip(&own.d_log_prob).for_each(|(sum, d)| *sum += scaled(d));
    // Only one of the two is compared with another distribution in the head.
    if !own.d_full_kl.is_empty() {
        rewards.d_full_kl = own.d_full_kl.iter().map(scaled).collect();
    }
    rewards.metrics.extend(own.metrics);
    rewards
}

fn mean(name: &'static str, values: impl Iterator<Item = f32>) -> Metric {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|x| (sum, count) = (sum + f64::from(x), count + 1.0));
    Metric { name, sum, count }
}

/// The name of a metric of the clipped policy loss, as verl has it for this loss.
fn renamed(name: &'static str) -> &'static str {
    match name {
        "actor/pg_clipfrac" => "distillation/pg_clipfrac",
        "actor/pg_clipfrac_lower" => "distillation/pg_clipfrac_lower",
        "actor/ppo_kl" => "distillation/ppo_kl",
        other => other,
    }
}
