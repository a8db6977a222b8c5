//! Input of a scorer, and the types of scorers.

use std::borrow::Cow;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::conversation::Conversation;
use super::function_setting::PREFILLED;
use super::score::Score;
use super::services::{RewardService, Services};

/// One response to be scored. Fields that are unknown are empty.
#[derive(Clone, Copy)]
pub struct ScoreInput<'a> {
    pub data_source: &'a str,
    /// Decoded response, without special tokens; possibly cut off by the length limit.
    pub solution: &'a str,
    /// Decoded response with its special tokens.
    pub raw: &'a str,
    /// Tokens of the response; `None` if it was read from a file.
    pub token_ids: Option<&'a [u32]>,
    /// Score of the reward model, if the run has one.
    pub model_score: Option<f32>,
    pub ground_truth: &'a Value,
    pub extra_info: &'a Value,
    /// Prompt as a list of messages, or as plain text; null if it is unknown.
    pub prompt: &'a Value,
    /// Prompt as text, as the policy read it.
    pub prompt_text: &'a str,
    /// Every column of the row.
    pub columns: &'a Map<String, Value>,
    /// The conversation that the response consists of; `None` for a response of one turn.
    pub conversation: Option<&'a dyn Conversation>,
    /// Training step, from 1; 0 before the first step and outside training.
    pub step: u64,
    /// Settings of the function that is called.
    pub settings: &'a [(&'static str, f64)],
    /// Services that some scorers need.
    pub services: &'a Services,
}

impl Default for ScoreInput<'_> {
    fn default() -> Self {
        static COLUMNS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        static SERVICES: Services = Services { sandbox: None, math_verify: None };
        Self {
            data_source: "",
            solution: "",
            raw: "",
            token_ids: None,
            model_score: None,
            ground_truth: &Value::Null,
            extra_info: &Value::Null,
            prompt: &Value::Null,
            prompt_text: "",
            columns: &COLUMNS,
            conversation: None,
            step: 0,
            settings: &[],
            services: &SERVICES,
        }
    }
}

impl<'a> ScoreInput<'a> {
    /// Returns the ground truth for scorers that compare with text; `None` if the row has no ground truth (`null`). The scorer
    /// then abstains.
    ///
    /// # Errors
    /// If the ground truth is neither text nor `null`.
    pub(crate) fn ground_truth_text(&self) -> Result<Option<&'a str>> {
        if self.ground_truth.is_null() {
            return Ok(None);
        }
        let wrong = || match self.ground_truth {
            Value::Number(number) => {
                format!("the ground truth of {} must be text, such as \"{number}\", not the number {number}", self.data_source)
            }
            other => format!("the ground truth of {} must be text, not {other}", self.data_source),
        };
        self.ground_truth.as_str().map(Some).with_context(wrong)
    }

    /// Returns a setting of the function that is called.
    ///
    /// # Errors
    /// If the function's [`Function::settings`](super::Function::settings) does not list the name.
    pub fn setting(&self, name: &str) -> Result<f64> {
        let setting = self.settings.iter().find(|(known, _)| *known == name);
        setting.map(|(_, value)| *value).with_context(|| format!("the function has no setting `{name}`"))
    }

    /// Returns an integer setting, one that takes [`Takes::Count`](super::Takes::Count).
    ///
    /// # Errors
    /// The errors of [`Self::setting`].
    pub fn count(&self, name: &str) -> Result<usize> {
        self.setting(name).map(|value| value as usize)
    }

    /// Returns the response; if the function's setting `prefilled` is true, with the tag that the prompt ends with in front.
    pub fn opened(&self, tag: &str) -> Cow<'a, str> {
        match self.settings.iter().any(|(name, value)| *name == PREFILLED[0].name && *value != 0.0) {
            true => format!("{tag}{}", self.solution).into(),
            false => self.solution.into(),
        }
    }

    /// Returns the number of tokens in the response.
    ///
    /// # Errors
    /// If the response was read from a file as text.
    pub(crate) fn token_count(&self) -> Result<usize> {
        let ids = self.token_ids.context("tokens can only be counted in responses generated here, not in text")?;
        Ok(ids.len())
    }
}

/// A reward function with state or other resources. Several threads call it at once, even while responses are generated.
pub trait Judge: Send + Sync {
    /// Scores one response.
    ///
    /// # Errors
    /// If the response cannot be scored; a [`RewardError`](super::reward_error::RewardError) if the function itself failed.
    fn score(&self, input: &ScoreInput) -> Result<Score>;
}

/// A reward function that sees all responses of a batch at once.
pub trait BatchJudge: Send + Sync {
    /// Returns one score per response, in the same order.
    ///
    /// # Errors
    /// If the responses cannot be scored.
    fn score(&self, inputs: &[ScoreInput]) -> Result<Vec<Score>>;
}

/// A scorer and its data sources.
pub struct Scorer {
    pub name: &'static str,
    pub doc: &'static str,
    /// Names of the data sources. A name that ends in `*` matches all names that begin with the part before it.
    pub data_sources: &'static [&'static str],
    /// Services that the scorer uses.
    pub needs: &'static [RewardService],
    /// Tag that a response must begin with; see [`Function::opens`](super::Function::opens).
    pub opens: Option<&'static str>,
    /// Check of a row: fails if no response to the row can be scored.
    pub check: fn(&ScoreInput) -> Result<()>,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

/// Checks that the ground truth is text or null: the [`Scorer::check`] of scorers that compare with text.
pub(crate) fn truth_is_text(input: &ScoreInput) -> Result<()> {
    input.ground_truth_text().map(drop)
}
