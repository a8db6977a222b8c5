//! Scores of responses: by the scorer of a row's data source ([`SCORERS`]), by reward functions chosen by name, by several at
//! once ([`Rewards`]), by a reward model ([`model`]), and by anything that implements [`Judge`].
//!
//! A scorer is one file and one line of [`SCORERS`]; a reward function that belongs to no data source is one file and one line of
//! [`FUNCTIONS`]. Each sees one response and its row. A response that cannot be scored is an error, never a silent 0. A scorer
//! abstains from a row on which it has no opinion, such as one without a ground truth.

use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::util::suggest::did_you_mean;

pub mod arithmetic;
mod cosine_scaled;
pub mod failure;
mod functions;
mod geo3k;
pub mod gsm8k;
mod hendrycks;
#[cfg(test)]
mod hostile;
mod integer_format;
pub mod math_dapo;
mod math_reward;
pub mod math_verify;
pub mod model;
pub mod prime_math;
pub mod python;
pub mod remote;
pub mod repetition_penalty;
mod rewards;
pub mod sandbox;
mod search_r1;
mod services;
mod soft_overlong;
pub mod stats;
mod think_format;

pub use functions::{ASK_RULES, FUNCTIONS, Function, Setting, function_names};
pub use rewards::{Begun, Combined, OnError, Reward, RewardOptions, Rewards, Runs};
pub use services::Services;

/// One response to be scored. Fields that are unknown are empty.
#[derive(Clone, Copy)]
pub struct ScoreInput<'a> {
    pub data_source: &'a str,
    /// The decoded response, without special tokens; possibly cut off by the length limit.
    pub solution: &'a str,
    /// The decoded response with its special tokens.
    pub raw: &'a str,
    /// The tokens of the response; `None` if it was read from a file.
    pub token_ids: Option<&'a [u32]>,
    /// The score of the reward model, if there is one.
    pub model_score: Option<f32>,
    pub ground_truth: &'a Value,
    pub extra_info: &'a Value,
    /// The conversation that was answered as a list of messages, or its plain text; null if it is unknown.
    pub prompt: &'a Value,
    /// The prompt as text, as the policy read it.
    pub prompt_text: &'a str,
    /// Every column of the row.
    pub columns: &'a Map<String, Value>,
    /// The training step, from 1; 0 before the first step and outside training.
    pub step: u64,
    /// The settings of the function that is called.
    pub settings: &'a [(&'static str, f64)],
    /// The services that some scorers need.
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
            step: 0,
            settings: &[],
            services: &SERVICES,
        }
    }
}

impl<'a> ScoreInput<'a> {
    /// The ground truth, for scorers that compare with text; `None` if the row has none (`null`), in which case they abstain.
    ///
    /// # Errors
    /// If the ground truth is neither text nor `null`.
    pub fn ground_truth_text(&self) -> Result<Option<&'a str>> {
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

    /// A setting of the function that is called.
    ///
    /// # Errors
    /// If the function's [`Function::settings`] does not list the name.
    pub fn setting(&self, name: &str) -> Result<f64> {
        let setting = self.settings.iter().find(|(known, _)| *known == name);
        setting.map(|(_, value)| *value).with_context(|| format!("the function has no setting `{name}`"))
    }

    /// A setting that counts something, one with [`Setting::least`].
    ///
    /// # Errors
    /// As for [`Self::setting`].
    pub fn count(&self, name: &str) -> Result<usize> {
        self.setting(name).map(|value| value as usize)
    }

    /// The number of tokens in the response.
    ///
    /// # Errors
    /// If the response was read from a file as text.
    pub fn token_count(&self) -> Result<usize> {
        let ids = self.token_ids.context("the tokens can only be counted of responses that were generated here, not of text")?;
        Ok(ids.len())
    }
}

/// A score, and named numbers that are logged with it. A scorer returns the same names for every response that it scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// `None` if the function has no opinion on this response, which is then left out of every baseline and mean and gets
    /// advantage 0.
    pub score: Option<f32>,
    pub extras: Vec<(String, f64)>,
    /// The answer in the response, by which `maj@N` of validation groups responses to one prompt; [`NO_ANSWER`] if none was
    /// found. `None` from a scorer that extracts no answer.
    pub pred: Option<String>,
    /// Values other than numbers: written next to the response where responses are written, and never averaged.
    pub notes: Vec<(String, Value)>,
}

/// The answer that verl's scorers report for a response without one; such responses agree with each other.
pub const NO_ANSWER: &str = "[INVALID]";

impl Score {
    pub fn new(score: f32) -> Self {
        Self { score: Some(score), ..Self::abstain() }
    }

    /// The score with the extra `acc` of the same value, which verl's reward manager makes of a bare number, and with the
    /// extracted answer.
    pub fn graded(score: f64, answer: Option<&str>) -> Self {
        let pred = Some(answer.unwrap_or(NO_ANSWER).to_owned());
        Self { extras: vec![("acc".into(), score)], pred, ..Self::new(score as f32) }
    }

    /// No opinion, like `None` from TRL's reward functions.
    pub fn abstain() -> Self {
        Self { score: None, extras: Vec::new(), pred: None, notes: Vec::new() }
    }
}

/// A reward function with state or other resources. Several threads call it at once, also while responses are generated.
pub trait Judge: Send + Sync {
    /// Scores one response.
    ///
    /// # Errors
    /// If the response cannot be scored; a [`failure::Failure`] if the function itself failed.
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
    /// The names of the data sources. A name that ends in `*` stands for all names with this beginning.
    pub data_sources: &'static [&'static str],
    /// Fails on a row for which no response can be scored.
    pub check: fn(&ScoreInput) -> Result<()>,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

/// All scorers; no data source is listed twice.
pub static SCORERS: &[Scorer] = &[
    Scorer {
        name: "gsm8k",
        doc: "1 if the number after the last \"#### \" equals the ground truth, else 0; abstains where that is null",
        data_sources: &["openai/gsm8k"],
        check: truth_is_text,
        run: gsm8k::score,
    },
    Scorer {
        name: "arithmetic",
        doc: "1 if the whole response equals the ground truth, else 0; abstains where that is null",
        data_sources: &["burnish/arithmetic"],
        check: truth_is_text,
        run: arithmetic::score,
    },
    Scorer {
        name: "math_reward",
        doc: "1 if the last \\boxed{} equals the ground truth in the normal form of the MATH data set, else 0; abstains where that is null",
        data_sources: &["lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500"],
        check: truth_is_text,
        run: math_reward::score,
    },
    Scorer {
        name: "math_dapo",
        doc: "1 if the last \"Answer: \" or else the last \\boxed{} near the end equals the ground truth, else -1; abstains where that is null",
        data_sources: &["math_dapo", "math", "math_dapo_reasoning", "aime*"],
        check: truth_is_text,
        run: math_dapo::score,
    },
    Scorer {
        name: "search_r1",
        doc: "1 if the last <answer> is one of the ground truth's target but for case, articles and punctuation, else 0; abstains where \
              the ground truth is null",
        data_sources: search_r1::DATA_SOURCES,
        check: search_r1::check,
        run: search_r1::score,
    },
    Scorer {
        name: "geo3k",
        doc: "0.9 if the last \\boxed{} equals the ground truth as text, number or expression, and 0.1 for <think>…</think> before a \
              box; abstains where the ground truth is null. What takes algebra to compare is compared by math-verify",
        data_sources: &["hiyouga/geometry3k"],
        check: truth_is_text,
        run: geo3k::score,
    },
    Scorer {
        name: "prime_math",
        doc: "1 if the answer of the response equals the ground truth as text, number or expression, else 0; abstains where that is \
              null. What takes algebra to compare is compared by math-verify",
        data_sources: &[
            "numina_aops_forum",
            "numina_synthetic_math",
            "numina_amc_aime",
            "numina_synthetic_amc",
            "numina_cn_k12",
            "numina_olympiads",
        ],
        check: prime_math::check,
        run: prime_math::score,
    },
    Scorer {
        name: "sandbox_fusion",
        doc: "The share of the first ten test cases that the program of the response passes, run by the service of \
              reward.sandbox_fusion.url; abstains where the ground truth is null",
        data_sources: &["codecontests", "apps", "codeforces", "taco"],
        check: sandbox::check,
        run: sandbox::score,
    },
];

/// The [`Scorer::check`] of scorers that compare with text.
pub fn truth_is_text(input: &ScoreInput) -> Result<()> {
    input.ground_truth_text().map(drop)
}

/// The scorer of a data source.
pub fn find(data_source: &str) -> Result<&'static Scorer> {
    let means = |listed: &&str| match listed.strip_suffix('*') {
        Some(beginning) => data_source.starts_with(beginning),
        None => data_source == *listed,
    };
    if let Some(scorer) = SCORERS.iter().find(|scorer| scorer.data_sources.iter().any(means)) {
        return Ok(scorer);
    }
    let known: Vec<&str> = SCORERS.iter().flat_map(|scorer| scorer.data_sources).copied().collect();
    let hint = did_you_mean(data_source, known.iter().copied());
    bail!("no scorer for the data source \"{data_source}\"; there are scorers for {}.{hint}", known.join(", "))
}

/// Fails on the first data source without a scorer. Call this before any response is generated.
pub fn check_sources<'a>(data_sources: impl IntoIterator<Item = &'a str>) -> Result<()> {
    data_sources.into_iter().try_for_each(|source| find(source).map(drop))
}
