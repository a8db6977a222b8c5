//! The score of a response: the weighted sum of several reward functions, each of which can abstain.

use super::rewards::Rewards;
use super::score::{FunctionReward, ResponseScore, Score};
use super::score_input::ScoreInput;
use super::scorers::find;

/// verl's name for the number that says if a response is right.
const ACCURACY: &str = "acc";

impl Rewards {
    /// Computes the weighted sum, and the accuracy beside it. If two functions report a number of the same name, the first keeps it, and the other's is
    /// prefixed with its function's name.
    pub(super) fn combine(&self, scores: Vec<Score>, input: &ScoreInput) -> ResponseScore {
        let mut combined = self.sum(scores);
        // No service is asked for a number that is only reported, and if the scorer fails, the number is left out.
        let rule = find(input.data_source).ok().filter(|rule| self.reports_accuracy && rule.needs.is_empty());
        if let Some(rule) = rule
            && combined.extra(ACCURACY).is_none()
            && let Ok(said) = (rule.run)(input)
        {
            let acc = said.extras.into_iter().find(|(name, _)| name == ACCURACY).map(|(_, acc)| acc);
            combined.extras.extend(acc.or(said.score.map(f64::from)).map(|acc| (ACCURACY.to_owned(), acc)));
        }
        combined
    }

    /// The weighted sum alone.
    fn sum(&self, scores: Vec<Score>) -> ResponseScore {
        let mut combined = ResponseScore::default();
        let mut sum = None;
        for (reward, score) in self.rewards.iter().zip(scores) {
            if let Some(reward_of_it) = score.score {
                sum = Some(sum.unwrap_or(0.0) + reward.weight * f64::from(reward_of_it));
            }
            combined.components.push(FunctionReward {
                name: reward.name.clone(),
                weight: reward.weight,
                reward: score.score.map(f64::from),
            });
            combined.pred = combined.pred.or(score.pred);
            combined.notes.extend(score.notes);
            for (name, value) in score.extras {
                let taken = combined.extra(&name).is_some();
                combined.report(&if taken { format!("{}/{name}", reward.name) } else { name }, value);
            }
        }
        combined.score = sum.map(|sum| sum as f32);
        combined
    }

    /// The score that a conversation gave itself, of which no function has an opinion.
    pub(super) fn own_score(&self, score: Score) -> ResponseScore {
        ResponseScore { score: score.score, ..self.sum(vec![Score::abstain(); self.rewards.len()]) }
    }

    /// The score of a conversation that failed: every function gets what replaces its reward.
    pub(super) fn failed_score(&self, instead: &Score) -> ResponseScore {
        self.sum(vec![instead.clone(); self.rewards.len()])
    }
}
