//! Watches whether a run learns from its scores. A run whose every advantage is 0 has a loss of 0, a KL of 0 and no clipped
//! token, which looks healthy. The run warns once after ten such steps, and again at the end.

use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_algorithm::advantage::Need;
use burnish_tracking::Metrics;

/// Steps in a row before the warning.
const LONG: u64 = 10;

/// Steps without a signal.
#[derive(Default)]
pub(crate) struct Signal {
    /// First of the current steps in a row, and the reason.
    since: Option<(u64, &'static str)>,
    /// First step of this process.
    first: Option<u64>,
    warned: bool,
}

impl Signal {
    /// Follows a step. `why`: the reason why it had no signal.
    pub(crate) fn follow(&mut self, step: u64, why: Option<&'static str>, metrics: &Metrics) {
        self.first.get_or_insert(step);
        self.since = why.map(|why| self.since.unwrap_or((step, why)));
        let Some((since, why)) = self.since.filter(|(since, _)| !self.warned && step + 1 - since >= LONG) else { return };
        self.warned = true;
        let number = |name: &str, what: &str| metrics.get(name).map_or(String::new(), |value| format!(", {what} {value:.3}"));
        tracing::warn!(
            "steps {since} to {step} taught the policy nothing: {why}{}{}{}. Unless the scores are as good as they can be, look at the \
             responses (trainer report), at the reward function (do all responses get the same score?), at data.max_response_length, and \
             at the learning rate (too high, and the policy collapses)",
            number("critic/score/mean", "mean score"),
            number("response/truncated_ratio", "share of responses cut by the length limit"),
            number("actor/entropy", "entropy"),
        );
    }

    /// Returns the step since which a run that ended after `step` had no signal, and the reason, if that was long: [`LONG`]
    /// steps, or all steps of the run.
    pub(crate) fn verdict(&self, step: u64) -> Option<(u64, &'static str)> {
        let (since, why) = self.since?;
        let steps = (step + 1).saturating_sub(since);
        (steps >= LONG || steps > 1 && self.first == Some(since)).then_some((since, why))
    }
}

/// Returns the reason why a finished step teaches nothing, or `None` if it does. `needs`: of the estimator. KL terms and an
/// entropy bonus may still move the policy.
pub(crate) fn missing(batch: &Batch, needs: impl Fn(Need) -> bool, metrics: &Metrics) -> Option<&'static str> {
    let scores: Vec<f64> = batch.trajectory_scores().into_iter().flatten().collect();
    let size = scores.iter().fold(0.0, |max: f64, score| max.max(score.abs()));
    let (mask, advantages) = (&batch[Column::Mask], batch.get(Column::Advantages));
    if mask.iter().all(|&m| m == 0.0) {
        return Some("no token was trained");
    }
    let largest = |advantages: &[f32]| {
        let trained = advantages.iter().zip(mask).filter(|(_, m)| **m != 0.0);
        trained.map(|(a, _)| f64::from(a.abs())).fold(0.0, f64::max)
    };
    // Scores that differ from their mean only by rounding leave advantages like 1e-9.
    if advantages.is_some_and(|advantages| largest(advantages) <= 1e-6 * size) {
        return Some("every advantage was 0");
    }
    if metrics.get("actor/grad_norm") == Some(0.0) {
        return Some("the gradient was 0");
    }
    // If nothing reads advantages, scores do not show what is learnt.
    advantages?;
    // Rewards of turns are not in the scores.
    if batch.episodes.iter().flatten().any(|episode| !episode.rewards.is_empty()) {
        return None;
    }
    let equal = needs(Need::Critic) && scores.len() > 1 && scores.iter().all(|score| *score == scores[0]);
    if equal {
        return Some("all responses had the same score");
    }
    // Estimators of named rewards learn from those rewards, not from the score.
    let alike = needs(Need::Group) && !needs(Need::Components) && equal_groups(batch) == Some(1.0);
    alike.then_some("all responses to each prompt had the same score")
}

/// Returns the scores of each group of several scored responses.
pub(crate) fn groups_of_scores(batch: &Batch) -> Vec<Vec<f64>> {
    let mut groups: Vec<Vec<f64>> = vec![Vec::new(); batch.prompts.len()];
    for (score, &group) in batch.trajectory_scores().into_iter().zip(&batch.group) {
        groups[group].extend(score);
    }
    groups.retain(|scores| scores.len() > 1);
    groups
}

/// Returns the share of groups of several scored responses with equal scores (TRL's `frac_reward_zero_std`, which compares the
/// computed deviation with 1e-8); `None` without such a group.
pub(crate) fn equal_groups(batch: &Batch) -> Option<f64> {
    let groups = groups_of_scores(batch);
    let equal = groups.iter().filter(|scores| scores.iter().all(|score| *score == scores[0])).count();
    (!groups.is_empty()).then(|| equal as f64 / groups.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::two_responses;
    use burnish_algorithm::advantage::{Estimator, find};

    #[test]
    fn long_silence_is_said_and_a_short_one_is_not() {
        let why = Some("every advantage was 0");
        let mut signal = Signal::default();
        for step in 1..=30 {
            signal.follow(step, why.filter(|_| step == 3 || step > 15), &Metrics::new());
            assert_eq!(signal.verdict(step).is_some(), step >= 25, "step {step}");
            assert_eq!(signal.warned, step >= 25);
        }
        assert_eq!(signal.verdict(30), why.map(|why| (16, why)));
        signal.follow(31, None, &Metrics::new());
        assert_eq!(signal.verdict(31), None);

        let mut all = Signal::default();
        all.follow(5, why, &Metrics::new());
        assert_eq!(all.verdict(5), None, "one step says little");
        all.follow(6, why, &Metrics::new());
        assert_eq!(all.verdict(6), why.map(|why| (5, why)));
    }

    #[test]
    fn what_a_step_lacks() {
        let (rloo, gae, reinforce) = (find("rloo").unwrap(), find("gae").unwrap(), find("reinforce").unwrap());
        let mut batch = two_responses();
        let lacks = |batch: &Batch, estimator: &Estimator| missing(batch, |need| estimator.needs(need), &Metrics::new());
        batch.scores.iter_mut().for_each(|score| score.score = Some(1.0));
        batch.set(Column::Advantages, vec![0.0, 3.7e-9, 0.0, -3.7e-9]);
        assert_eq!(lacks(&batch, rloo), Some("every advantage was 0"));
        // A KL term in the rewards moves the advantages, but the scores still carry no signal.
        batch.set(Column::Advantages, vec![0.01, -0.01, 0.0, 0.0]);
        assert_eq!((lacks(&batch, rloo).is_some(), lacks(&batch, gae).is_some(), lacks(&batch, reinforce)), (true, true, None));
        assert_eq!(equal_groups(&batch), Some(1.0));
        assert_eq!(lacks(&batch, find("gdpo").unwrap()), None, "it learns from named rewards");
        batch.scores[1].score = Some(0.0);
        assert_eq!((lacks(&batch, rloo), lacks(&batch, gae), equal_groups(&batch)), (None, None, Some(0.0)));
        let still: Metrics = [("actor/grad_norm", 0.0)].into_iter().collect();
        assert_eq!(missing(&batch, |need| rloo.needs(need), &still), Some("the gradient was 0"));
        batch.set(Column::Mask, vec![0.0; 4]);
        assert_eq!(lacks(&batch, rloo), Some("no token was trained"));
        batch.scores[0].score = None;
        assert_eq!(equal_groups(&batch), None, "one response is not a group");
    }
}
