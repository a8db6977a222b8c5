//! Registry entry of a reward function that is chosen by name.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::function_setting::{FunctionSetting, Takes};
use super::score::Score;
use super::score_input::ScoreInput;
use super::services::RewardService;
use burnish_util::suggest::did_you_mean;

/// A part of a row that a reward function may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPart {
    DataSource,
    GroundTruth,
    /// The ground truth, or the column `solution` of rows without it, as in TRL.
    Solution,
}

/// A reward function that can be chosen by name: a row of [`FUNCTIONS`](super::FUNCTIONS), or a scorer.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub doc: &'static str,
    /// Settings that `reward.function_kwargs` can change.
    pub settings: &'static [FunctionSetting],
    /// Parts of a row that the function reads.
    pub reads: &'static [RowPart],
    /// Services that the function uses.
    pub needs: &'static [RewardService],
    /// Tag that a response must begin with, unless the prompt already ends with it.
    pub opens: Option<&'static str>,
    /// Check of a row, like [`super::Scorer::check`].
    pub check: fn(&ScoreInput) -> Result<()>,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

impl Function {
    /// Returns the settings of this function: `given` values, and defaults for the others.
    ///
    /// # Errors
    /// If a name is unknown, a number is not finite or not allowed, or a required setting is missing.
    pub fn settings(&self, given: &BTreeMap<String, f64>) -> Result<Vec<(&'static str, f64)>> {
        let known = || self.settings.iter().map(|setting| setting.name);
        for (name, value) in given {
            if !known().any(|setting| setting == name) {
                let hint = did_you_mean(name, known());
                let known: Vec<&str> = known().collect();
                let listed = if known.is_empty() { "has none".to_owned() } else { format!("has {}", known.join(", ")) };
                bail!("the reward function \"{}\" has no setting \"{name}\": it {listed}.{hint}", self.name);
            }
            if !value.is_finite() {
                bail!("the setting \"{name}\" of the reward function \"{}\" is {value}: it must be finite", self.name);
            }
        }
        let value = |setting: &FunctionSetting| {
            let value = given.get(setting.name).copied().or(setting.default);
            let key = || format!("reward.function_kwargs.{}.{}", self.name, setting.name);
            let missing = || format!("the reward function \"{}\" needs a number: write +{}=NUMBER", self.name, key());
            let value = value.with_context(missing)?;
            match setting.takes {
                Takes::Count(min) if value.fract() != 0.0 || value < f64::from(min) => {
                    bail!("{} must be an integer of at least {min}, not {value}", key())
                }
                Takes::Flag if ![0.0, 1.0].contains(&value) => bail!("{} must be true or false, not {value}", key()),
                _ => {}
            }
            Ok((setting.name, value))
        };
        self.settings.iter().map(value).collect()
    }
}
