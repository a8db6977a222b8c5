//! DAPO's dynamic sampling: groups that teach nothing are thrown away, and others generated in their place.
//!
//! What verl reports about it. The recipe: `train/num_gen_batches`, the generation batches one training batch took. The core of
//! 0.9, which counts groups: `training/filter_groups/evicted_samples`, those thrown away;
//! `training/filter_groups/discarded_surplus_samples`, those that were good but too many; and, as a table in Weights & Biases
//! only, `training/filter_groups/filtered_reward_counts`, how many of those thrown away had which value. OpenRLHF:
//! `dynamic_filtering_pass_rate`, 100·(responses kept)/(prompts used), so that n responses per prompt give up to n·100.

use std::collections::BTreeMap;

/// As that of an estimator.
pub const DOC: &str = "Only groups whose responses differ in the metric are trained on; others are replaced by further generation.\n\
    Formula: a group is kept if the std of its metric is above 0 or it is of one response; with a range: if low < mean < high.\n\
    Paper: Yu et al. 2025, DAPO, arXiv:2503.14476.\n\
    verl: RayDAPOTrainer.fit of the recipe; ReplayBuffer of 0.9.\n\
    OpenRLHF: SamplesGenerator._generate_vllm (with a range).\n\
    Deviation: equal numbers are compared, not their computed std, which is 1e-17 and so above 0 for three times 0.1 in verl. \
    Responses without a score are not counted; where they leave fewer than two of a group, it is thrown away.\n\
    When: many prompts are always solved or never, and their groups have advantage 0.";

/// Which groups are worth training on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Criterion {
    /// Not all values are equal.
    Varied,
    /// The mean is strictly between the two, whether the values differ or not.
    MeanWithin { low: f64, high: f64 },
}

/// The groups to keep, in the order in which they first appear. `group` and `values` have one entry per response; equal numbers
/// in `group` form a group, `values` is the metric, `None` for responses without a score.
pub fn keep_groups(group: &[usize], values: &[Option<f64>], criterion: Criterion) -> Vec<usize> {
    let mut members: BTreeMap<usize, (usize, Vec<Option<f64>>)> = BTreeMap::new();
    for (first, (&group, &value)) in group.iter().zip(values).enumerate() {
        members.entry(group).or_insert((first, Vec::new())).1.push(value);
    }
    let is_kept = |values: &[Option<f64>]| {
        let scored: Vec<f64> = values.iter().copied().flatten().collect();
        match (criterion, scored.len()) {
            // A group that was of one from the start is no comparison among responses, and is not judged as one.
            (_, 0) => false,
            (Criterion::Varied, 1) => values.len() == 1,
            (Criterion::Varied, _) => scored.iter().any(|value| *value != scored[0]),
            (Criterion::MeanWithin { low, high }, count) => {
                let mean = scored.iter().sum::<f64>() / count as f64;
                low < mean && mean < high && (count > 1 || values.len() == 1)
            }
        }
    };
    let mut kept: Vec<(usize, usize)> =
        members.iter().filter(|(_, (_, values))| is_kept(values)).map(|(&group, &(first, _))| (first, group)).collect();
    kept.sort_unstable();
    kept.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_that_differ_are_kept_in_the_order_they_came() {
        let group = [7, 7, 7, 2, 2, 2, 5, 9, 9, 4];
        let values = [0.1, 0.1, 0.1, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0].map(Some);
        assert_eq!(keep_groups(&group, &values, Criterion::Varied), [2, 5, 9, 4]);
        assert_eq!(keep_groups(&group, &values, Criterion::MeanWithin { low: 0.0, high: 1.0 }), [7, 2, 9]);
        assert_eq!(keep_groups(&group, &values, Criterion::MeanWithin { low: 0.5, high: 1.0 }), [2]);
        assert!(keep_groups(&[], &[], Criterion::Varied).is_empty());
    }

    #[test]
    fn abstained_responses_are_not_counted() {
        let values = [Some(0.0), None, Some(0.0), Some(1.0), None, None, Some(0.5), None, Some(1.0), Some(0.0)];
        let group = [0, 0, 0, 1, 1, 2, 3, 3, 4, 4];
        assert_eq!(keep_groups(&group, &values, Criterion::Varied), [4]);
        assert_eq!(keep_groups(&group, &values, Criterion::MeanWithin { low: 0.0, high: 1.0 }), [4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_thrown_away_has_one_value(rows in prop::collection::vec((0..4usize, prop::option::weighted(0.8, 0..3u8)), 0..16)) {
            let group: Vec<usize> = rows.iter().map(|row| row.0).collect();
            let values: Vec<Option<f64>> = rows.iter().map(|row| row.1.map(f64::from)).collect();
            let kept = keep_groups(&group, &values, Criterion::Varied);
            for g in 0..4 {
                let all: Vec<Option<f64>> = (0..rows.len()).filter(|&i| group[i] == g).map(|i| values[i]).collect();
                let mut scored: Vec<f64> = all.iter().copied().flatten().collect();
                scored.sort_by(f64::total_cmp);
                let differ = scored.first() != scored.last();
                prop_assert_eq!(kept.contains(&g), differ || (all.len() == 1 && scored.len() == 1));
            }
            let mut unique = kept.clone();
            unique.sort_unstable();
            unique.dedup();
            prop_assert_eq!(unique.len(), kept.len());
        }
    }
}
