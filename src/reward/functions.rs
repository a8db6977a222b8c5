//! The reward functions that are chosen by name, whatever the row's data source: [`FUNCTIONS`] and every scorer.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::{
    SCORERS, Score, ScoreInput, cosine_scaled, find, gsm8k, integer_format, math_dapo, math_verify, repetition_penalty,
    soft_overlong, think_format,
};
use crate::util::suggest::did_you_mean;

/// A row of [`FUNCTIONS`].
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub doc: &'static str,
    /// Numbers that `reward.function_kwargs` may set.
    pub settings: &'static [Setting],
    /// As [`super::Scorer::check`].
    pub check: fn(&ScoreInput) -> Result<()>,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

/// A number that a function reads by [`ScoreInput::setting`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub name: &'static str,
    /// `None` where it must be given.
    pub default: Option<f64>,
    /// Where it counts something: the least there may be. It is then an integer.
    pub least: Option<u32>,
}

/// Functions that ask the rule of the row's data source.
pub const ASK_RULES: &[&str] = &["data_source", cosine_scaled::FUNCTION.name];

/// The function whose score is said by a model, after everything else is known.
pub const REWARD_MODEL: &str = "reward_model";

/// The functions that are no scorer of a data source. Every scorer can be chosen by its name too.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "data_source",
        doc: "The scorer of the row's data source.\nverl: default_compute_score.",
        settings: &[],
        check: |input| (find(input.data_source)?.check)(input),
        run: |input| (find(input.data_source)?.run)(input),
    },
    Function {
        name: REWARD_MODEL,
        doc: "The score of the reward model, which reward_model.enable=true loads.\nverl: rm_scores.",
        settings: &[],
        check: |_| Ok(()),
        run: |input| input.model_score.map(Score::new).context("there is no reward model: write reward_model.enable=true"),
    },
    think_format::FUNCTION,
    repetition_penalty::FUNCTION,
    soft_overlong::FUNCTION,
    cosine_scaled::FUNCTION,
    gsm8k::FLEXIBLE,
    math_dapo::STRICT_BOX,
    integer_format::FUNCTION,
    math_verify::VERL,
    math_verify::ACCURACY,
    math_verify::REASONING_ACCURACY,
];

/// Every function there is.
pub fn all() -> impl Iterator<Item = Function> {
    let scorers = SCORERS.iter().map(|s| Function { name: s.name, doc: s.doc, settings: &[], check: s.check, run: s.run });
    FUNCTIONS.iter().copied().chain(scorers)
}

/// The names of all functions.
pub fn function_names() -> Vec<&'static str> {
    all().map(|function| function.name).collect()
}

impl Function {
    /// The settings of this function, `given` ones before its defaults.
    ///
    /// # Errors
    /// A name that it does not know, a number that is not finite, one without a default that is not given.
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
                bail!("the setting \"{name}\" of the reward function \"{}\" is {value}", self.name);
            }
        }
        let value = |setting: &Setting| {
            let value = given.get(setting.name).copied().or(setting.default);
            let key = || format!("reward.function_kwargs.{}.{}", self.name, setting.name);
            let missing = || format!("the reward function \"{}\" needs a number: write +{}=NUMBER", self.name, key());
            let value = value.with_context(missing)?;
            if let Some(least) = setting.least.filter(|least| value.fract() != 0.0 || value < f64::from(*least)) {
                bail!("{} must be an integer of at least {least}, not {value}", key());
            }
            Ok((setting.name, value))
        };
        self.settings.iter().map(value).collect()
    }
}
