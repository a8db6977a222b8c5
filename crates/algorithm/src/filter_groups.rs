//! DAPO's dynamic sampling: groups without a learning signal are discarded, and replacements are generated.
//!
//! The metrics of verl's recipe: `train/num_gen_batches`, the number of generation batches for one training batch. The metrics of
//! verl 0.9's core, which count groups: `training/filter_groups/evicted_samples`, the discarded groups;
//! `training/filter_groups/discarded_surplus_samples`, the groups that were good but too many; and, as a table in Weights &
//! Biases only, `training/filter_groups/filtered_reward_counts`, the number of discarded groups by their value. The metric of
//! OpenRLHF: `dynamic_filtering_pass_rate`, 100·(responses kept)/(prompts used), so that n responses per prompt give up to n·100.

use std::collections::BTreeMap;

/// The documentation of the entry, in the format of [`Estimator::doc`](super::advantage::Estimator::doc).
pub const DOC: &str = "Only groups whose responses differ in the metric are trained on; others are replaced by further generation.\n\
    Formula: a group is kept if max − min of its metric is above the tolerance (0) or it is of one response; with a range: if \
    low < mean < high.\n\
    Paper: Yu et al. 2025, DAPO, arXiv:2503.14476.\n\
    verl: RayDAPOTrainer.fit of the recipe; ReplayBuffer of 0.9.\n\
    OpenRLHF: SamplesGenerator._generate_vllm (with a range).\n\
    SkyRL: zero_variance_filter, whose tolerance is 1e-6 and which replaces no group.\n\
    prime-rl: the gate advantage_range [0, 0], for estimators with advantage 0 where scores are equal.\n\
    Deviation: equal numbers are compared, not their computed std, which is 1e-17 and so above 0 for three times 0.1 in verl. \
    Responses without a score are not counted; where they leave fewer than two of a group, it is discarded.\n\
    When: many prompts are always solved or never, and their groups have advantage 0.";

/// Returns the responses of the groups to keep, in their order. `group` and `values` have one entry per response. Equal indices
/// in `group` form a group, `values` is the metric, `None` for responses without a score. A group is kept if its values differ by more
/// than `tolerance`; with `mean_range`, instead, if its mean is strictly between the two numbers.
pub fn keep_groups(group: &[usize], values: &[Option<f64>], mean_range: Option<[f64; 2]>, tolerance: f64) -> Vec<usize> {
    let mut members: BTreeMap<usize, Vec<Option<f64>>> = BTreeMap::new();
    for (&group, &value) in group.iter().zip(values) {
        members.entry(group).or_default().push(value);
    }
    let is_kept = |values: &[Option<f64>]| {
        let scored: Vec<f64> = values.iter().copied().flatten().collect();
        // A group that had one response from the start compares nothing, so it is kept.
        let is_comparable = scored.len() > 1 || (values.len(), scored.len()) == (1, 1);
        is_comparable
            && match mean_range {
                Some([low, high]) => {
                    let mean = scored.iter().sum::<f64>() / scored.len() as f64;
                    low < mean && mean < high
                }
                None => {
                    let (least, most) = scored.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
                    scored.len() == 1 || most - least > tolerance
                }
            }
    };
    let keeps: BTreeMap<usize, bool> = members.iter().map(|(&group, values)| (group, is_kept(values))).collect();
    (0..group.len().min(values.len())).filter(|&i| keeps[&group[i]]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn responses_of_groups_that_differ_are_kept() {
        assert_eq!(keep_groups(&[0, 0, 1, 1], &[0.5, 0.5000001, 0.0, 1.0].map(Some), None, 1e-6), [2, 3]);
        let group = [7, 2, 7, 2, 7, 2, 5, 9, 9];
        let values = [0.1, 1.0, 0.1, 0.0, 0.1, 1.0, 0.0, 0.0, 1.0].map(Some);
        assert_eq!(keep_groups(&group, &values, None, 0.0), [1, 3, 5, 6, 7, 8]);
        assert_eq!(keep_groups(&group, &values, Some([0.0, 1.0]), 0.0), [0, 1, 2, 3, 4, 5, 7, 8]);
        assert_eq!(keep_groups(&group, &values, Some([0.5, 1.0]), 0.0), [1, 3, 5]);
        assert!(keep_groups(&[], &[], None, 0.0).is_empty());
    }

    #[test]
    fn abstained_responses_are_not_counted() {
        let values = [Some(0.0), None, Some(0.0), Some(1.0), None, None, Some(0.5), None, Some(1.0), None, Some(0.0)];
        let group = [0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4];
        assert_eq!(keep_groups(&group, &values, None, 0.0), [8, 9, 10]);
        assert_eq!(keep_groups(&group, &values, Some([0.0, 1.0]), 0.0), [8, 9, 10]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_thrown_away_has_one_value(rows in prop::collection::vec((0..4usize, prop::option::weighted(0.8, 0..3u8)), 0..16)) {
            let group: Vec<usize> = rows.iter().map(|row| row.0).collect();
            let values: Vec<Option<f64>> = rows.iter().map(|row| row.1.map(f64::from)).collect();
            let kept = keep_groups(&group, &values, None, 0.0);
            let teaches = |group: usize| {
                let own = || rows.iter().filter(|row| row.0 == group);
                let mut scored: Vec<u8> = own().filter_map(|row| row.1).collect();
                scored.sort_unstable();
                scored.first() != scored.last() || (own().count(), scored.len()) == (1, 1)
            };
            let expected: Vec<usize> = (0..rows.len()).filter(|&i| teaches(rows[i].0)).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
