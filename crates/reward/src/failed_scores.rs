//! Replacement scores for responses that a function fails to score, and one warning for all of them.

use anyhow::{Error, Result};

use super::reward_error::RewardError;
use super::reward_function::OnError;
use super::score::Score;
use super::stats::Stats;
use burnish_util::interrupt::Interrupted;

/// Failures in one batch.
pub(super) struct FailedScores<'a> {
    on_error: OnError,
    stats: &'a Stats,
    first: Option<String>,
    /// Number of scores that were replaced.
    pub count: usize,
}

impl<'a> FailedScores<'a> {
    pub(crate) fn new(on_error: OnError, stats: &'a Stats) -> Self {
        Self { on_error, stats, first: None, count: 0 }
    }

    /// Returns the score that replaces the score of a failed function. `place` describes the response for the message.
    ///
    /// # Errors
    /// If the failure ends the run. An interruption always does.
    pub(crate) fn replace(&mut self, error: Error, function: &str, place: impl Fn() -> String) -> Result<Score> {
        self.instead(error, &format!("reward function \"{function}\""), place)
    }

    /// Returns the score that replaces the scores of all functions for a failed conversation.
    ///
    /// # Errors
    /// The errors of [`Self::replace`].
    pub(crate) fn replace_conversation(&mut self, error: Error, place: impl Fn() -> String) -> Result<Score> {
        self.instead(error, "the conversation failed", place)
    }

    fn instead(&mut self, error: Error, what: &str, place: impl Fn() -> String) -> Result<Score> {
        if error.is::<Interrupted>() {
            return Err(error);
        }
        self.stats.failed(error.downcast_ref::<RewardError>().map(|failure| failure.kind));
        let error = error.context(what.to_owned()).context(place());
        let score = match self.on_error {
            OnError::Error => return Err(error),
            OnError::Abstain => Score::abstain(),
            OnError::Value(value) => Score::new(value),
        };
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{error:#}"));
        Ok(score)
    }

    /// Logs one warning with the number of failures and the first of them.
    pub(crate) fn warn(self) {
        if let Some(first) = self.first {
            let instead = match self.on_error {
                OnError::Value(value) => value.to_string(),
                OnError::Error | OnError::Abstain => "no opinion".to_owned(),
            };
            tracing::warn!("{} failed and count as {instead} (reward.on_error); the first: {first}", plural(self.count));
        }
    }
}

fn plural(count: usize) -> String {
    if count == 1 { "one reward".to_owned() } else { format!("{count} rewards") }
}
