//! The second part of a score, once the last response of a batch is complete: the functions that see the batch, then those that read
//! the reward model's score, then the weighted sum.

use anyhow::{Result, anyhow, ensure};

use super::ask::{Answer, PendingScores, Settled};
use super::failed_scores::FailedScores;
use super::reward_function::{Reward, Runs};
use super::rewards::Rewards;
use super::score::ResponseScore;
use super::score::Score;
use super::score_input::{BatchJudge, ScoreInput};

impl Rewards {
    /// Completes the scores of responses, in their order; `pending` is shorter than `inputs` if a response has failed. `place`
    /// describes a response for messages.
    ///
    /// # Errors
    /// If a failure ends the run: the first response that a function fails to score, with the function's name. A reward that is
    /// not finite is no error here; the caller decides about it (`trainer.on_nonfinite`).
    pub fn complete(
        &self,
        inputs: &[ScoreInput],
        pending: Vec<PendingScores>,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<ResponseScore>> {
        let mut failed = FailedScores::new(self.on_error, &self.stats);
        let mut answers: Vec<Vec<Answer>> = Vec::with_capacity(pending.len());
        let mut settled: Vec<Option<ResponseScore>> = Vec::with_capacity(pending.len());
        for (i, mut pending) in pending.into_iter().enumerate() {
            for (reward, answer) in self.rewards.iter().zip(&mut pending.answers) {
                if let Answer::Said(said) = answer
                    && let Err(error) = said
                {
                    let error = std::mem::replace(error, anyhow!("it failed"));
                    *said = Ok(failed.replace(error, &reward.name, || place(i))?);
                }
            }
            settled.push(match pending.settled {
                None => None,
                Some(Settled(Ok(score))) => Some(self.own_score(score)),
                Some(Settled(Err(error))) => Some(self.failed_score(&failed.replace_conversation(error, || place(i))?)),
            });
            answers.push(pending.answers);
        }
        let open: Vec<usize> = (0..inputs.len()).filter(|&i| !matches!(settled.get(i), Some(Some(_)))).collect();
        for (k, reward) in self.rewards.iter().enumerate() {
            if let Runs::Together(judge) = &reward.runs {
                let inputs: Vec<ScoreInput> = open.iter().map(|&i| inputs[i]).collect();
                if inputs.is_empty() {
                    continue;
                }
                let scores = self.of_batch(reward, judge.as_ref(), &inputs, &mut failed)?;
                for (&i, score) in open.iter().zip(scores) {
                    if let Some(answers) = answers.get_mut(i) {
                        answers[k] = Answer::Said(Ok(score));
                    }
                }
            }
        }
        let mut combined = Vec::with_capacity(inputs.len());
        for (i, ((input, answers), settled)) in inputs.iter().zip(answers).zip(settled).enumerate() {
            if let Some(score) = settled {
                combined.push(score);
                continue;
            }
            let mut scores = Vec::with_capacity(answers.len());
            for (reward, answer) in self.rewards.iter().zip(answers) {
                let score = match answer {
                    Answer::Said(said) => said,
                    Answer::AfterRewardModel if let Runs::Late(run) = &reward.runs => run(&self.own(reward, input)),
                    Answer::AfterRewardModel | Answer::WithBatch => Err(anyhow!("it was not asked")),
                };
                scores.push(score.or_else(|error| failed.replace(error, &reward.name, || place(i)))?);
            }
            combined.push(self.combine(scores, input));
        }
        failed.warn();
        Ok(combined)
    }

    /// The scores of a function that sees all responses of a batch.
    fn of_batch(
        &self,
        reward: &Reward,
        judge: &dyn BatchJudge,
        inputs: &[ScoreInput],
        failed: &mut FailedScores,
    ) -> Result<Vec<Score>> {
        let own: Vec<ScoreInput> = inputs.iter().map(|input| self.own(reward, input)).collect();
        let scores = self.stats.time(&reward.name, || judge.score(&own)).and_then(|scores| {
            ensure!(scores.len() == own.len(), "{} scores for {} responses", scores.len(), own.len());
            Ok(scores)
        });
        scores.or_else(|error| {
            let score = failed.replace(error, &reward.name, || format!("scoring a batch of {} responses", own.len()))?;
            failed.count += own.len().saturating_sub(1);
            Ok(vec![score; own.len()])
        })
    }
}
