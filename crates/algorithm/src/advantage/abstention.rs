//! Sequences without a score: they are left out of every baseline, mean and deviation, and have advantage 0.
//!
//! This is as in TRL, whose reward functions may return `None`. If abstentions leave a single scored response in a group, the
//! response cannot be compared, and group estimators give it advantage 0 too (TRL divides 0 by 0 there).

use std::collections::BTreeMap;

use super::{AdvantageInput, AdvantageOutput, Component, Estimator};
use crate::{gather, gather_offsets, scatter};
use burnish_registry::Need;

impl Estimator {
    /// Runs the estimator on the sequences with a score; the others get advantage and return 0. `scored` has one entry per
    /// sequence.
    ///
    /// # Panics
    /// If a column that the estimator `needs` is `None`.
    pub fn estimate(&self, input: &AdvantageInput, scored: &[bool]) -> AdvantageOutput {
        let comparable = comparable(input.group, scored, self.needs(Need::Group));
        if comparable.iter().all(|&comparable| comparable) {
            return (self.run)(input);
        }
        let kept: Vec<usize> = (0..scored.len()).filter(|&i| comparable[i]).collect();
        let mut output = AdvantageOutput { advantages: vec![0.0; input.mask.len()], returns: vec![0.0; input.mask.len()] };
        if kept.is_empty() {
            return output;
        }
        let tokens = |column: &[f32]| gather(column, input.offsets, &kept);
        let (rewards, scores, mask) = (tokens(input.rewards), tokens(input.scores), tokens(input.mask));
        let [values, old_log_prob, sum_pi_squared, weights] =
            [input.values, input.old_log_prob, input.sum_pi_squared, input.rollout_is_weights].map(|c| c.map(tokens));
        let group: Vec<usize> = kept.iter().map(|&i| input.group[i]).collect();
        let baselines: Option<Vec<f32>> = input.reward_baselines.map(|b| kept.iter().map(|&i| b[i]).collect());
        let of_roles: Option<Vec<f64>> = input.role_baselines.map(|b| kept.iter().map(|&i| b[i]).collect());
        let offsets = gather_offsets(input.offsets, &kept);
        let components: Vec<Component> = input
            .components
            .iter()
            .map(|c| Component { values: kept.iter().map(|&i| c.values[i]).collect(), ..c.clone() })
            .collect();
        let own = (self.run)(&AdvantageInput {
            offsets: &offsets,
            rewards: &rewards,
            scores: &scores,
            mask: &mask,
            group: &group,
            values: values.as_deref(),
            reward_baselines: baselines.as_deref(),
            role_baselines: of_roles.as_deref(),
            old_log_prob: old_log_prob.as_deref(),
            sum_pi_squared: sum_pi_squared.as_deref(),
            rollout_is_weights: weights.as_deref(),
            components: &components,
            options: input.options.clone(),
        });
        scatter(&mut output.advantages, &own.advantages, input.offsets, &kept);
        scatter(&mut output.returns, &own.returns, input.offsets, &kept);
        output
    }
}

/// Returns true for the sequences that have a score and, for an estimator that compares groups, another scored one in their group; a
/// group that had one sequence from the start is kept.
pub fn comparable(group: &[usize], scored: &[bool], compares_groups: bool) -> Vec<bool> {
    let mut counts: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (&group, &scored) in group.iter().zip(scored) {
        let (members, with_score) = counts.entry(group).or_default();
        *members += 1;
        *with_score += usize::from(scored);
    }
    let alone = |group: &usize| counts.get(group).is_some_and(|&(members, with_score)| members > 1 && with_score == 1);
    group.iter().zip(scored).map(|(group, &scored)| scored && !(compares_groups && alone(group))).collect()
}
