//! The first part of a score: the functions that need only one response are called as soon as it ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Error, Result};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::reward_function::{Reward, Runs};
use super::rewards::Rewards;
use super::said;
use super::score::Score;
use super::score_input::ScoreInput;

/// The answer of one function about one response.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    /// Its score, or the reason why it has none.
    Said(#[serde(with = "said")] Result<Score>),
    /// It is called once the reward model's score is known.
    AfterRewardModel,
    /// It is called for all responses of the batch at once.
    WithBatch,
}

/// The verdict of a conversation: no function is called.
#[derive(Serialize, Deserialize)]
pub(super) struct Settled(#[serde(with = "said")] pub Result<Score>);

/// A response for which some functions have been called, and others not yet.
#[derive(Serialize, Deserialize)]
pub struct PendingScores {
    /// One answer for each function; none where the verdict is settled.
    pub(super) answers: Vec<Answer>,
    pub(super) settled: Option<Settled>,
}

impl PendingScores {
    /// True if a function failed, or the conversation.
    pub fn failed(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer, Answer::Said(Err(_)))) || matches!(&self.settled, Some(Settled(Err(_))))
    }
}

impl Rewards {
    /// Calls the functions that need only this response, unless it is a conversation with a verdict of its own. Several threads can do so
    /// at once.
    pub fn ask(&self, input: &ScoreInput) -> PendingScores {
        if let Some(verdict) = input.conversation.and_then(|conversation| conversation.verdict()) {
            let score = verdict.map(|score| Score::new(score as f32)).map_err(Error::from);
            return PendingScores { answers: Vec::new(), settled: Some(Settled(score)) };
        }
        let ask = |reward: &Reward| {
            let input = self.own(reward, input);
            match &reward.runs {
                Runs::Rule(run) => Answer::Said(self.stats.time(&reward.name, || run(&input))),
                Runs::Each(judge) => Answer::Said(self.stats.time(&reward.name, || judge.score(&input))),
                Runs::Late(_) => Answer::AfterRewardModel,
                Runs::Together(_) => Answer::WithBatch,
            }
        };
        PendingScores { answers: self.rewards.iter().map(ask).collect(), settled: None }
    }

    /// [`Self::ask`] for response `i`; skipped if a response with a lower index has failed and failures end the run. Lower
    /// indices still run after a failure, because one of them may fail too: the same run always reports the same response.
    pub fn ask_unless_failed(&self, i: usize, input: &ScoreInput, failed: &AtomicUsize) -> Option<PendingScores> {
        (i <= failed.load(Ordering::Relaxed)).then(|| {
            let pending = self.ask(input);
            if pending.failed() && self.fails() {
                failed.fetch_min(i, Ordering::Relaxed);
            }
            pending
        })
    }

    /// [`Self::ask`] for all responses, on `workers` threads. If a failure ends the run, the result holds at least the first
    /// response that fails and all before it.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn ask_all(&self, inputs: &[ScoreInput], workers: usize) -> Result<Vec<PendingScores>> {
        let failed = AtomicUsize::new(usize::MAX);
        let workers = workers.min(inputs.len().max(1));
        let threads = ThreadPoolBuilder::new().num_threads(workers).build().context("cannot start threads")?;
        let ask = |(i, input): (usize, &ScoreInput)| self.ask_unless_failed(i, input, &failed);
        let pending: Vec<Option<PendingScores>> = threads.install(|| inputs.par_iter().enumerate().map(ask).collect());
        Ok(pending.into_iter().map_while(|pending| pending).collect())
    }
}
