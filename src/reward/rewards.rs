//! The reward functions of a run, which score a response together: in `ask.rs` those that see one response alone, as soon as it ends;
//! in `complete.rs` the others, and the weighted sum.

use anyhow::{Context, Result};

use super::reward_function::{OnError, Reward, Runs};
use super::score::ResponseScore;
use super::score_input::ScoreInput;
use super::services::Services;
use super::stats::Stats;

/// The reward functions of a run with their weights.
pub struct Rewards {
    pub(super) rewards: Vec<Reward>,
    pub(super) services: Services,
    pub(super) on_error: OnError,
    /// See [`RewardOptions::reports_accuracy`](super::RewardOptions::reports_accuracy).
    pub(super) reports_accuracy: bool,
    /// Call times and failures since the last report.
    pub stats: Stats,
}

impl Rewards {
    /// Rewards from the given functions.
    pub fn of(rewards: Vec<Reward>) -> Self {
        Self {
            rewards,
            services: Services::default(),
            on_error: OnError::Error,
            reports_accuracy: false,
            stats: Stats::default(),
        }
    }

    /// True if a function is called outside this process.
    pub fn is_remote(&self) -> bool {
        self.rewards.iter().any(|reward| matches!(reward.runs, Runs::Each(_) | Runs::Together(_))) || self.services.any()
    }

    /// The services that the functions use.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Checks that every function can score responses to a row, whatever their text; `input` has no response.
    ///
    /// # Errors
    /// The error of the first function that cannot, with its name.
    pub fn check(&self, input: &ScoreInput) -> Result<()> {
        let check = |reward: &Reward| {
            (reward.check)(&self.own(reward, input)).with_context(|| format!("reward function \"{}\"", reward.name))
        };
        self.rewards.iter().try_for_each(check)
    }

    /// True if a failure ends the run.
    pub fn fails(&self) -> bool {
        self.on_error == OnError::Error
    }

    /// The weighted sum of the functions' rewards for one response (TRL: nansum over functions). If all functions abstain, there
    /// is no score.
    ///
    /// # Errors
    /// As for [`Self::complete`].
    pub fn score(&self, input: &ScoreInput) -> Result<ResponseScore> {
        let place = |_| "scoring the response".to_owned();
        let mut combined = self.complete(std::slice::from_ref(input), vec![self.ask(input)], place)?;
        combined.pop().context("one response has one score")
    }

    /// The input for one function, with its settings.
    pub(super) fn own<'a>(&'a self, reward: &'a Reward, input: &ScoreInput<'a>) -> ScoreInput<'a> {
        ScoreInput { settings: &reward.settings, services: &self.services, ..*input }
    }
}
