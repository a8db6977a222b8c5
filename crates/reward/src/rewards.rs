//! Reward functions of a run, which score a response together. `judge_call.rs` calls the functions that need one response only,
//! as soon as it ends. `complete.rs` calls the others and computes the weighted sum.

use anyhow::{Context, Result};

use super::function_setting::PREFILLED;
use super::functions::DATA_SOURCE;
use super::reward_function::{OnError, Reward, Runs};
use super::score::ResponseScore;
use super::score_input::ScoreInput;
use super::scorers::find;
use super::services::Services;
use super::stats::Stats;

/// A reward function that expects responses to begin with a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tagged {
    pub function: String,
    pub tag: &'static str,
    /// True if every prompt ends with the tag.
    pub is_prefilled: bool,
}

/// Reward functions of a run, with their weights.
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
    /// Creates rewards from the given functions.
    pub fn from_functions(rewards: Vec<Reward>) -> Self {
        Self {
            rewards,
            services: Services::default(),
            on_error: OnError::Error,
            reports_accuracy: false,
            stats: Stats::default(),
        }
    }

    /// Returns true if a function is called outside this process.
    pub fn is_remote(&self) -> bool {
        self.rewards.iter().any(|reward| matches!(reward.runs, Runs::Each(_) | Runs::Together(_))) || self.services.any()
    }

    /// Returns true if a function sees all responses of a batch at once.
    pub fn sees_batches(&self) -> bool {
        self.rewards.iter().any(|reward| matches!(reward.runs, Runs::Together(_)))
    }

    /// Returns the names of the functions.
    pub fn names(&self) -> Vec<&str> {
        self.rewards.iter().map(|reward| reward.name.as_str()).collect()
    }

    /// Returns the services that the functions use.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Checks that every function can score some response to a row; `input` has no response.
    ///
    /// # Errors
    /// The error of the first function that cannot, with its name.
    pub fn check(&self, input: &ScoreInput) -> Result<()> {
        let check = |reward: &Reward| {
            (reward.check)(&self.input_for(reward, input)).with_context(|| format!("reward function \"{}\"", reward.name))
        };
        self.rewards.iter().try_for_each(check)
    }

    /// Returns the functions that expect responses to rows of this data source to begin with a tag.
    pub fn tagged(&self, data_source: &str) -> impl Iterator<Item = Tagged> {
        let by_rule = find(data_source).ok().map(|scorer| (scorer.name, scorer.opens));
        self.rewards.iter().filter_map(move |reward| {
            let (function, opens) = match (reward.name.as_str(), by_rule) {
                (DATA_SOURCE, Some(by_rule)) => by_rule,
                (name, _) => (name, reward.opens),
            };
            let is_prefilled = reward.settings.iter().any(|(name, value)| *name == PREFILLED[0].name && *value != 0.0);
            Some(Tagged { function: function.to_owned(), tag: opens?, is_prefilled })
        })
    }

    /// Returns true if a failure ends the run.
    pub fn fails(&self) -> bool {
        self.on_error == OnError::Error
    }

    /// Returns the weighted sum of the functions' rewards for one response (TRL: nansum over functions). If all functions
    /// abstain, the result has no score.
    ///
    /// # Errors
    /// The errors of [`Self::complete`].
    pub fn score(&self, input: &ScoreInput) -> Result<ResponseScore> {
        let place = |_| "scoring the response".to_owned();
        let mut combined = self.complete(std::slice::from_ref(input), vec![self.begin(input)], place)?;
        combined.pop().context("one response has one score")
    }

    /// Returns the input for one function, with its settings.
    pub(super) fn input_for<'a>(&'a self, reward: &'a Reward, input: &ScoreInput<'a>) -> ScoreInput<'a> {
        ScoreInput { settings: &reward.settings, services: &self.services, ..*input }
    }
}
