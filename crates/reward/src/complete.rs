//! Second part of scoring, once the last response of a batch is complete. Calls the functions that see the whole batch, then
//! those that read the reward model's score, and then computes the weighted sum.

use anyhow::{Result, anyhow, ensure};

use super::failed_scores::FailedScores;
use super::judge_call::{ConversationScore, JudgeResult, PendingScores};
use super::reward_function::{Reward, Runs};
use super::rewards::Rewards;
use super::score::ResponseScore;
use super::score::Score;
use super::score_input::{BatchJudge, ScoreInput};

impl Rewards {
    /// Completes the scores of responses, in their order. `pending` is shorter than `inputs` if a response has failed. `place`
    /// describes a response for messages.
    ///
    /// # Errors
    /// If a failure ends the run: the first response that a function fails to score, with the function's name. A reward that is
    /// not finite is not an error here; the caller decides about it (`trainer.on_nonfinite`).
    pub fn complete(
        &self,
        inputs: &[ScoreInput],
        pending: Vec<PendingScores>,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<ResponseScore>> {
        let mut failed = FailedScores::new(self.on_error, &self.stats);
        let mut results: Vec<Vec<JudgeResult>> = Vec::with_capacity(pending.len());
        let mut conversation_score: Vec<Option<ResponseScore>> = Vec::with_capacity(pending.len());
        for (i, mut pending) in pending.into_iter().enumerate() {
            for (reward, result) in self.rewards.iter().zip(&mut pending.results) {
                if let JudgeResult::Called(called) = result
                    && let Err(error) = called
                {
                    let error = std::mem::replace(error, anyhow!("it failed"));
                    *called = Ok(failed.replace(error, &reward.name, || place(i))?);
                }
            }
            conversation_score.push(match pending.conversation_score {
                None => None,
                Some(ConversationScore(Ok(score))) => Some(self.own_score(score)),
                Some(ConversationScore(Err(error))) => Some(self.failed_score(&failed.replace_conversation(error, || place(i))?)),
            });
            results.push(pending.results);
        }
        let open: Vec<usize> = (0..inputs.len()).filter(|&i| !matches!(conversation_score.get(i), Some(Some(_)))).collect();
        for (k, reward) in self.rewards.iter().enumerate() {
            if let Runs::Together(judge) = &reward.runs {
                let inputs: Vec<ScoreInput> = open.iter().map(|&i| inputs[i]).collect();
                if inputs.is_empty() {
                    continue;
                }
                let scores = self.score_batch(reward, judge.as_ref(), &inputs, &mut failed)?;
                for (&i, score) in open.iter().zip(scores) {
                    if let Some(results) = results.get_mut(i) {
                        results[k] = JudgeResult::Called(Ok(score));
                    }
                }
            }
        }
        let mut combined = Vec::with_capacity(inputs.len());
        for (i, ((input, results), conversation_score)) in inputs.iter().zip(results).zip(conversation_score).enumerate() {
            if let Some(score) = conversation_score {
                combined.push(score);
                continue;
            }
            let mut scores = Vec::with_capacity(results.len());
            for (reward, result) in self.rewards.iter().zip(results) {
                let score = match result {
                    JudgeResult::Called(called) => called,
                    JudgeResult::AfterRewardModel if let Runs::Late(run) = &reward.runs => run(&self.input_for(reward, input)),
                    JudgeResult::AfterRewardModel | JudgeResult::WithBatch => Err(anyhow!("it was not called")),
                };
                scores.push(score.or_else(|error| failed.replace(error, &reward.name, || place(i)))?);
            }
            combined.push(self.combine(scores, input));
        }
        failed.warn();
        Ok(combined)
    }

    /// Returns the scores of a function that sees all responses of a batch.
    fn score_batch(
        &self,
        reward: &Reward,
        judge: &dyn BatchJudge,
        inputs: &[ScoreInput],
        failed: &mut FailedScores,
    ) -> Result<Vec<Score>> {
        let own: Vec<ScoreInput> = inputs.iter().map(|input| self.input_for(reward, input)).collect();
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
