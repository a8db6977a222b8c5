//! Score of a response: the weighted sum of several reward functions. Each function can abstain.

use std::collections::HashSet;

use super::rewards::Rewards;
use super::score::{FunctionReward, ResponseScore, Score};
use super::score_input::ScoreInput;
use super::scorers::find;

/// verl's name for the value that tells if a response is right.
const ACCURACY: &str = "acc";

impl Rewards {
    /// Computes the weighted sum and the accuracy. If two functions report a value under the same name, the first keeps the name.
    /// The other's name gets its function's name as a prefix.
    pub(super) fn combine(&self, scores: Vec<Score>, input: &ScoreInput) -> ResponseScore {
        let mut combined = self.sum(scores);
        // `acc` is only reported: no service is called for it, and if the scorer fails, `acc` is left out.
        let rule = find(input.data_source).ok().filter(|rule| self.reports_accuracy && rule.needs.is_empty());
        if let Some(rule) = rule
            && combined.extra(ACCURACY).is_none()
            && let Ok(result) = (rule.run)(input)
        {
            let acc = result.extras.into_iter().find(|(name, _)| name == ACCURACY).map(|(_, acc)| acc);
            combined.extras.extend(acc.or(result.score.map(f64::from)).map(|acc| (ACCURACY.to_owned(), acc)));
        }
        combined
    }

    /// Computes only the weighted sum.
    fn sum(&self, scores: Vec<Score>) -> ResponseScore {
        let mut combined = ResponseScore::default();
        let mut sum = None;
        for (reward, score) in self.rewards.iter().zip(scores) {
            if let Some(value) = score.score {
                sum = Some(sum.unwrap_or(0.0) + reward.weight * f64::from(value));
            }
            combined.components.push(FunctionReward {
                name: reward.name.clone(),
                weight: reward.weight,
                reward: score.score.map(f64::from),
            });
            combined.pred = combined.pred.or(score.pred);
            combined.notes.extend(score.notes);
            // Names are unique within a score, so only those of earlier functions are taken.
            let taken: HashSet<String> = combined.extras.iter().map(|(name, _)| name.clone()).collect();
            let named = score.extras.into_iter().map(|(name, value)| {
                let name = if taken.contains(&name) { format!("{}/{name}", reward.name) } else { name };
                (name, value)
            });
            combined.report_all(named);
        }
        combined.score = sum.map(|sum| sum as f32);
        combined
    }

    /// Returns the score that the conversation gave itself; every function abstains.
    pub(super) fn own_score(&self, score: Score) -> ResponseScore {
        ResponseScore { score: score.score, ..self.sum(vec![Score::abstain(); self.rewards.len()]) }
    }

    /// Returns the score of a conversation that failed: every function gets the replacement score.
    pub(super) fn failed_score(&self, instead: &Score) -> ResponseScore {
        self.sum(vec![instead.clone(); self.rewards.len()])
    }
}
