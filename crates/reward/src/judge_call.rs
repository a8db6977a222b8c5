//! First part of scoring: calls the functions that need only one response, as soon as that response ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Error, Result};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::reward_function::{Reward, Runs};
use super::rewards::Rewards;
use super::score::Score;
use super::score_input::ScoreInput;
use super::wire;

/// State of one function's score for one response.
#[derive(Serialize, Deserialize)]
pub(super) enum JudgeResult {
    /// The function's score, or its error.
    Called(#[serde(with = "wire")] Result<Score>),
    /// The function is called once the reward model's score is known.
    AfterRewardModel,
    /// The function is called for all responses of the batch at once.
    WithBatch,
}

/// A score, or an error, that the conversation itself supplies; no function is called.
#[derive(Serialize, Deserialize)]
pub(super) struct ConversationScore(#[serde(with = "wire")] pub Result<Score>);

/// A response whose score is incomplete: some functions have been called, others not yet.
#[derive(Serialize, Deserialize)]
pub struct PendingScores {
    /// One result per function; empty if the conversation supplies the score.
    pub(super) results: Vec<JudgeResult>,
    pub(super) conversation_score: Option<ConversationScore>,
}

impl PendingScores {
    /// Returns true if a function or the conversation failed.
    pub fn failed(&self) -> bool {
        self.results.iter().any(|result| matches!(result, JudgeResult::Called(Err(_))))
            || matches!(&self.conversation_score, Some(ConversationScore(Err(_))))
    }
}

impl Rewards {
    /// Calls the functions that need only this response. None is called if the conversation supplies its own score. Thread-safe.
    pub fn begin(&self, input: &ScoreInput) -> PendingScores {
        if let Some(verdict) = input.conversation.and_then(|conversation| conversation.verdict()) {
            let score = verdict.map(|score| Score::new(score as f32)).map_err(Error::from);
            return PendingScores { results: Vec::new(), conversation_score: Some(ConversationScore(score)) };
        }
        let ask = |reward: &Reward| {
            let input = self.input_for(reward, input);
            match &reward.runs {
                Runs::Rule(run) => JudgeResult::Called(self.stats.time(&reward.name, || run(&input))),
                Runs::Each(judge) => JudgeResult::Called(self.stats.time(&reward.name, || judge.score(&input))),
                Runs::Late(_) => JudgeResult::AfterRewardModel,
                Runs::Together(_) => JudgeResult::WithBatch,
            }
        };
        PendingScores { results: self.rewards.iter().map(ask).collect(), conversation_score: None }
    }

    /// Calls [`Self::begin`] for response `i`. Skips it if a response with a lower index has failed and failures end the run.
    /// Lower indices still run after a failure, because they may fail too: every run reports the same response.
    pub fn begin_unless_failed(&self, i: usize, input: &ScoreInput, failed: &AtomicUsize) -> Option<PendingScores> {
        (i <= failed.load(Ordering::Relaxed)).then(|| {
            let pending = self.begin(input);
            if pending.failed() && self.fails() {
                failed.fetch_min(i, Ordering::Relaxed);
            }
            pending
        })
    }

    /// Calls [`Self::begin`] for all responses, on `workers` threads. If a failure ends the run, the result holds at least the
    /// first response that fails and all before it.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn begin_all(&self, inputs: &[ScoreInput], workers: usize) -> Result<Vec<PendingScores>> {
        let failed = AtomicUsize::new(usize::MAX);
        let workers = workers.min(inputs.len().max(1));
        let threads = ThreadPoolBuilder::new().num_threads(workers).build().context("cannot start threads")?;
        let ask = |(i, input): (usize, &ScoreInput)| self.begin_unless_failed(i, input, &failed);
        let pending: Vec<Option<PendingScores>> = threads.install(|| inputs.par_iter().enumerate().map(ask).collect());
        Ok(pending.into_iter().map_while(|pending| pending).collect())
    }
}
