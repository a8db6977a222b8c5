//! Groups of responses that dynamic sampling discards: the first ones of a step, with the reason.

use crate::trainer::batch::Batch;
use burnish_util::number::short;

/// Number of groups of a step that are recorded.
const MOST: usize = 16;

/// Discarded groups of a step, each as a batch of one prompt, with the reason.
#[derive(Default)]
pub(crate) struct DiscardedGroups(Vec<(Batch, String)>);

impl DiscardedGroups {
    /// Adds groups of a batch, while there is room. `values`: the metric of each response. `why`: the reason, by the values of the
    /// group.
    pub(super) fn add(
        &mut self,
        batch: &Batch,
        values: &[Option<f64>],
        is_discarded: impl Fn(usize) -> bool,
        why: impl Fn(&[Option<f64>]) -> String,
    ) {
        for group in (0..batch.prompts.len()).filter(|group| is_discarded(*group)).take(MOST - self.0.len()) {
            let members: Vec<usize> = (0..batch.len()).filter(|&i| batch.group[i] == group).collect();
            let of_group: Vec<Option<f64>> = members.iter().map(|&i| values[i]).collect();
            self.0.push((batch.select(&members), why(&of_group)));
        }
    }

    /// Returns the groups with their reasons.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Batch, &str)> {
        self.0.iter().map(|(batch, reason)| (batch, reason.as_str()))
    }
}

/// Returns the reason why a group has no place in a step, by its values of the metric.
pub(super) fn reason(metric: &str, range: Option<[f64; 2]>, values: &[Option<f64>]) -> String {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    match range {
        _ if known.len() < 2 => format!("{} of {} responses have {metric}", known.len(), values.len()),
        Some([low, high]) => format!("mean {metric} {} is not between {} and {}", short(mean), short(low), short(high)),
        None if known.iter().any(|value| *value != known[0]) => {
            format!("{metric} differs by no more than algorithm.filter_groups.tolerance")
        }
        None => format!("{metric} is {} for all responses", short(known[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::two_responses;

    #[test]
    fn reasons_name_the_metric_and_its_values() {
        assert_eq!(reason("acc", None, &[Some(1.0), Some(1.0), None]), "acc is 1 for all responses");
        assert_eq!(reason("acc", None, &[Some(1.0), None]), "1 of 2 responses have acc");
        assert_eq!(reason("acc", Some([0.1, 0.9]), &[Some(1.0), Some(0.9)]), "mean acc 0.95 is not between 0.1 and 0.9");
    }

    #[test]
    fn a_step_keeps_its_first_groups() {
        let mut discarded = DiscardedGroups::default();
        let batch = two_responses();
        for _ in 0..2 * MOST {
            discarded.add(&batch, &[Some(0.0), Some(1.0)], |group| group == 0, |values| format!("{values:?}"));
        }
        assert_eq!(discarded.iter().count(), MOST);
        let expected: Vec<Option<f64>> = (0..2).filter(|&i| batch.group[i] == 0).map(|i| Some(i as f64)).collect();
        assert!(discarded.iter().all(|(group, why)| group.prompts.len() == 1 && why == format!("{expected:?}")));
    }
}
