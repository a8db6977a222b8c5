//! The scores of the responses to each prompt.

use crate::trainer::batch::Batch;

/// Returns the scores of each group of several scored responses.
pub(super) fn groups_of_scores(batch: &Batch) -> Vec<Vec<f64>> {
    let mut groups: Vec<Vec<f64>> = vec![Vec::new(); batch.prompts.len()];
    for (score, &group) in batch.trajectory_scores().into_iter().zip(&batch.group) {
        groups[group].extend(score);
    }
    groups.retain(|scores| scores.len() > 1);
    groups
}

/// Returns the share of groups of several scored responses with equal scores (TRL's `frac_reward_zero_std`, which compares the
/// computed deviation with 1e-8); `None` without such a group.
pub(super) fn equal_groups(batch: &Batch) -> Option<f64> {
    let groups = groups_of_scores(batch);
    let equal = groups.iter().filter(|scores| scores.iter().all(|score| *score == scores[0])).count();
    (!groups.is_empty()).then(|| equal as f64 / groups.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::two_responses;

    #[test]
    fn groups_with_equal_scores_are_counted() {
        let mut batch = two_responses();
        batch.scores.iter_mut().for_each(|score| score.score = Some(1.0));
        assert_eq!(equal_groups(&batch), Some(1.0));
        batch.scores[1].score = Some(0.0);
        assert_eq!(equal_groups(&batch), Some(0.0));
        batch.scores[0].score = None;
        assert_eq!(equal_groups(&batch), None, "one response is not a group");
    }
}
