//! Scores of responses: by the rule of a row's data source ([`SCORERS`]), by name, several at once ([`Rewards`]), by a reward
//! model ([`model`]), and by whatever implements [`Judge`].
//!
//! A scorer is one file and one line of [`SCORERS`]; a reward function that is tied to no data source is one file and one line
//! of [`FUNCTIONS`]. Each sees one response and its row. What it cannot score is an error, never a silent 0; a row it has no
//! opinion on, such as one without a ground truth, it abstains from.

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

/// One response to be scored. What is not known of it is empty.
#[derive(Clone, Copy)]
pub struct ScoreInput<'a> {
    pub data_source: &'a str,
    /// The decoded response, without special tokens; possibly cut off by the length limit.
    pub solution: &'a str,
    /// The decoded response with its special tokens.
    pub raw: &'a str,
    /// The tokens of the response, where it was generated here and not read from a file.
    pub token_ids: Option<&'a [u32]>,
    /// What the reward model says, where there is one.
    pub model_score: Option<f32>,
    pub ground_truth: &'a Value,
    pub extra_info: &'a Value,
    /// The conversation that was answered as a list of messages, or its plain text; null where it is not known.
    pub prompt: &'a Value,
    /// The prompt as the policy read it.
    pub prompt_text: &'a str,
    /// Every column of the row.
    pub columns: &'a Map<String, Value>,
    /// The step of training, from 1; 0 before it and without one.
    pub step: u64,
    /// The settings of the function that is asked.
    pub settings: &'a [(&'static str, f64)],
    /// What some scorers work with.
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
    /// The ground truth of scorers that compare with text; `None` where the row has none (`null`), which they abstain from.
    ///
    /// # Errors
    /// A ground truth that is neither text nor `null`.
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

    /// A setting of the function that is asked.
    ///
    /// # Errors
    /// A name that the function's [`Function::settings`] does not list.
    pub fn setting(&self, name: &str) -> Result<f64> {
        let setting = self.settings.iter().find(|(known, _)| *known == name);
        setting.map(|(_, value)| *value).with_context(|| format!("the function has no setting `{name}`"))
    }

    /// A setting that counts something, which its [`Setting::least`] says.
    ///
    /// # Errors
    /// See [`Self::setting`].
    pub fn count(&self, name: &str) -> Result<usize> {
        self.setting(name).map(|value| value as usize)
    }

    /// How many tokens the response has.
    ///
    /// # Errors
    /// A response that was read as text.
    pub fn token_count(&self) -> Result<usize> {
        let ids = self.token_ids.context("the tokens can only be counted of responses that were generated here, not of text")?;
        Ok(ids.len())
    }
}

/// A score, and named numbers that are logged beside it; a scorer returns the same names for every response it scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// `None` where the function has no opinion on this response: it is then left out of every baseline and mean, with
    /// advantage 0.
    pub score: Option<f32>,
    pub extras: Vec<(String, f64)>,
    /// The answer that was found in the response, by which responses to one prompt are said to agree (`maj@N` of validation);
    /// [`NO_ANSWER`] where none was found. `None` from a scorer that looks for no answer.
    pub pred: Option<String>,
    /// What is no number: written beside the response where those are written, and counted nowhere.
    pub notes: Vec<(String, Value)>,
}

/// What verl's scorers call the answer of a response that has none; such responses agree with each other.
pub const NO_ANSWER: &str = "[INVALID]";

impl Score {
    pub fn new(score: f32) -> Self {
        Self { score: Some(score), ..Self::abstain() }
    }

    /// What verl's reward manager makes of a bare number: the same as the extra `acc`. The answer that was found is named too.
    pub fn graded(score: f64, answer: Option<&str>) -> Self {
        let pred = Some(answer.unwrap_or(NO_ANSWER).to_owned());
        Self { extras: vec![("acc".into(), score)], pred, ..Self::new(score as f32) }
    }

    /// No opinion; what TRL's reward functions say with `None`.
    pub fn abstain() -> Self {
        Self { score: None, extras: Vec::new(), pred: None, notes: Vec::new() }
    }
}

/// A reward function that is more than a rule. It is asked by several threads at once, also while responses are generated.
pub trait Judge: Send + Sync {
    /// # Errors
    /// What keeps it from scoring this response; a [`failure::Failure`] where it is the function that failed.
    fn score(&self, input: &ScoreInput) -> Result<Score>;
}

/// A reward function that sees all responses of a batch at once.
pub trait BatchJudge: Send + Sync {
    /// One score per response, in their order.
    ///
    /// # Errors
    /// What keeps it from scoring them.
    fn score(&self, inputs: &[ScoreInput]) -> Result<Vec<Score>>;
}

/// One rule and the data sources it scores.
pub struct Scorer {
    pub name: &'static str,
    pub doc: &'static str,
    /// One that ends in `*` stands for all that begin so.
    pub data_sources: &'static [&'static str],
    /// What it demands of a row: fails on one that no response can be scored against.
    pub check: fn(&ScoreInput) -> Result<()>,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

/// Every scorer; no data source is listed twice.
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

/// As [`Scorer::check`] of those that compare with text.
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

/// Fails on the first data source without a scorer: to be called before any response is generated.
pub fn check_sources<'a>(data_sources: impl IntoIterator<Item = &'a str>) -> Result<()> {
    data_sources.into_iter().try_for_each(|source| find(source).map(drop))
}
