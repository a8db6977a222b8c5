//! Rewards of tools, users and environments within conversations, and their part in the score (`algorithm.turn_rewards`).

use super::Batch;
use super::columns::Column;
use burnish_agent::Episode;
use burnish_config::schema::TurnRewards;
use burnish_reward::ResponseScore;

/// Adds the rewards of a conversation to its score, if they are part of it. A conversation without a score stays without one.
pub(crate) fn join(setting: TurnRewards, score: &mut ResponseScore, episode: Option<&Episode>) {
    let Some(earned) = not_self_scored(episode)
        .filter(|episode| setting == TurnRewards::Sum && !episode.rewards.is_empty())
        .map(Episode::earned)
    else {
        return;
    };
    score.score = score.score.map(|score| (f64::from(score) + earned) as f32);
}

/// Adds the rewards of scored conversations to a token column, each at the token that earned it, if they belong to tokens.
pub(crate) fn place(setting: TurnRewards, batch: &Batch, column: &mut [f32]) {
    for (at, value) in places(setting, batch) {
        column[at] += value;
    }
}

/// Moves rewards from tokens that rollout correction rejected to the last trained token before, or to the first one after.
pub(crate) fn settle(setting: TurnRewards, batch: &Batch, column: &mut [f32]) {
    let is_trained = |t: &usize| batch[Column::Mask][*t] != 0.0;
    for (at, _) in places(setting, batch).into_iter().filter(|(at, _)| !is_trained(at)) {
        let tokens = batch.tokens(batch.offsets().partition_point(|&start| start <= at) - 1);
        let place = (tokens.start..at).rev().find(is_trained).or_else(|| (at..tokens.end).find(is_trained));
        if let Some(place) = place {
            column[place] += std::mem::take(&mut column[at]);
        }
    }
}

/// Returns the tokens of the batch that earned rewards, with the rewards.
fn places(setting: TurnRewards, batch: &Batch) -> Vec<(usize, f32)> {
    let scored = (0..batch.len()).filter(|&i| setting == TurnRewards::Place && batch.scores[i].score.is_some());
    let of_one = |i: usize| {
        let rewards = not_self_scored(batch.episodes[i].as_deref()).into_iter().flat_map(|episode| &episode.rewards);
        rewards.filter_map(move |reward| Some((batch.tokens(i).take(reward.at + 1).next_back()?, reward.value as f32)))
    };
    scored.flat_map(of_one).collect()
}

/// Returns what estimators add to the score of each trajectory.
pub(crate) fn placed_total(setting: TurnRewards, episode: Option<&Episode>) -> f64 {
    not_self_scored(episode).filter(|_| setting == TurnRewards::Place).map_or(0.0, Episode::earned)
}

/// A conversation that does not score itself. If it did, its score would already include the rewards.
fn not_self_scored(episode: Option<&Episode>) -> Option<&Episode> {
    episode.filter(|episode| episode.score.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::{conversations, episode};
    use burnish_agent::TurnReward;

    fn batch() -> Batch {
        let reward = |at, value| TurnReward { at, value, of_tool: true };
        let mut first = episode(&[true, true, false, true, true]);
        first.rewards = vec![reward(1, 0.25), reward(1, -1.0), reward(4, 0.5)];
        let mut second = episode(&[true, true]);
        second.rewards = vec![reward(1, 8.0)];
        conversations(vec![first, second])
    }

    #[test]
    fn rewards_are_left_added_or_placed() {
        let mut batch = batch();
        batch.scores[1].score = None;
        for (setting, score, column) in [
            (TurnRewards::Ignore, 0.0, [0.0; 7]),
            (TurnRewards::Sum, -0.25, [0.0; 7]),
            (TurnRewards::Place, 0.0, [0.0, -0.75, 0.0, 0.0, 0.5, 0.0, 0.0]),
        ] {
            let mut scores = batch.scores.clone();
            for (score, episode) in scores.iter_mut().zip(&batch.episodes) {
                join(setting, score, episode.as_deref());
            }
            assert_eq!(scores.iter().map(|score| score.score).collect::<Vec<_>>(), [Some(score), None], "{setting:?}");
            let mut placed = vec![0.0; 7];
            place(setting, &batch, &mut placed);
            assert_eq!(placed, column, "{setting:?}");
        }
        assert_eq!(placed_total(TurnRewards::Place, batch.episodes[0].as_deref()), -0.25);
    }

    /// A rejected token loses no reward: for any mask, the sum is the same.
    #[test]
    fn rewards_of_tokens_that_are_left_out_move() {
        let mut batch = batch();
        for (mask, column) in [
            ([1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], [-0.75, 0.0, 0.0, 0.0, 0.5, 0.0, 8.0]),
            ([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -0.25, 0.0, 0.0, 8.0]),
        ] {
            batch.set(Column::Mask, mask.to_vec());
            let mut placed = vec![0.0; 7];
            place(TurnRewards::Place, &batch, &mut placed);
            settle(TurnRewards::Place, &batch, &mut placed);
            assert_eq!(placed, column);
        }
    }
}
