//! The kind of reward model in the settings: its head and its readout.

use anyhow::{Context, Result};

use crate::pipelines::stage::hf_config;
use burnish_algorithm::ranking::{self, RankingLoss};
use burnish_config::RmConfig;
use burnish_config::schema::{InitHead, ModelInit};
use burnish_data::Tokenizer;
use burnish_model::hf_config::Classifier;
use burnish_model::{CausalLm, HeadInit, NewHead, Readout};

/// The task of a reward model.
pub(super) enum RewardModelForm {
    /// Scoring texts, from pairs.
    Pairs {
        loss: &'static RankingLoss,
        /// `algorithm.center_rewards_coefficient`
        center: f64,
    },
    /// Judging steps.
    Steps(StepReadout),
}

/// The readout at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepReadout {
    /// The two labels of a token classifier: wrong and right.
    Labels,
    /// The logits of these tokens of a language model.
    Tokens(Vec<u32>),
    /// The logits of all tokens.
    Vocabulary,
}

impl StepReadout {
    pub(super) fn readout(&self) -> Readout<'_> {
        match self {
            Self::Labels => Readout::Labels,
            Self::Tokens(tokens) => Readout::Tokens(tokens),
            Self::Vocabulary => Readout::Vocabulary,
        }
    }

    /// Returns the number of logits of the readout.
    pub(super) fn numbers(&self, model: &CausalLm) -> usize {
        match self {
            Self::Labels => 2,
            Self::Tokens(tokens) => tokens.len(),
            Self::Vocabulary => model.config.vocab_size,
        }
    }
}

/// Returns the loss of `algorithm.loss_type`.
///
/// # Errors
/// If the loss does not exist.
pub(super) fn loss(config: &RmConfig) -> Result<&'static RankingLoss> {
    ranking::find(&config.algorithm.loss_type).context("unknown algorithm.loss_type")
}

/// Returns the number of labels and the kind of the head; `None` for the head of a language model.
///
/// # Errors
/// If the loss is unknown.
pub(super) fn head(config: &RmConfig) -> Result<Option<(usize, Classifier)>> {
    Ok(match (loss(config)?.form, &config.data.placeholder_token) {
        (ranking::RankingForm::Pairs(_), _) => Some((1, Classifier::Sequences)),
        (ranking::RankingForm::Steps, None) => Some((2, Classifier::Tokens)),
        (ranking::RankingForm::Steps, Some(_)) => None,
    })
}

/// Returns true if `algorithm.init_head` initialises the head.
///
/// # Errors
/// If the loss is unknown, or config.json cannot be read.
pub(crate) fn draws_head(config: &RmConfig) -> Result<bool> {
    if head(config)?.is_none() || config.model.init == ModelInit::Random {
        return Ok(head(config)?.is_some());
    }
    Ok(hf_config(&config.model)?.classifier().is_none())
}

/// Returns the new head of a language model.
pub(super) fn fresh_head(kind: Classifier, init: InitHead, seed: u64) -> NewHead {
    let init = match init {
        InitHead::Normal => HeadInit::Normal,
        InitHead::Scaled => HeadInit::Scaled,
        InitHead::Zeros => HeadInit::Zeros,
    };
    NewHead { kind, init, seed }
}

/// Returns the readout at a step.
///
/// # Errors
/// If one of `algorithm.reward_tokens` is not a token, or two are equal.
pub(crate) fn step_readout(config: &RmConfig, tokenizer: &Tokenizer) -> Result<StepReadout> {
    let Some(tokens) = config.algorithm.reward_tokens.as_ref().filter(|_| config.data.placeholder_token.is_some()) else {
        let labels = config.data.placeholder_token.is_none();
        return Ok(if labels { StepReadout::Labels } else { StepReadout::Vocabulary });
    };
    let ids = tokenizer.singles(&tokens.0).context("algorithm.reward_tokens")?;
    Ok(StepReadout::Tokens(ids))
}

impl RewardModelForm {
    /// # Errors
    /// If the loss is unknown, or one of `algorithm.reward_tokens` is not a token.
    pub(super) fn from_config(config: &RmConfig, tokenizer: &Tokenizer) -> Result<Self> {
        let loss = loss(config)?;
        Ok(match loss.form {
            ranking::RankingForm::Pairs(_) => {
                Self::Pairs { loss, center: config.algorithm.center_rewards_coefficient.unwrap_or(0.0) }
            }
            ranking::RankingForm::Steps => Self::Steps(step_readout(config, tokenizer)?),
        })
    }

    /// Describes the task for users.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Pairs { loss, .. } => format!("to score texts, from pairs ({})", loss.name),
            Self::Steps(StepReadout::Labels) => "to judge steps, by two labels of their last tokens".to_owned(),
            Self::Steps(StepReadout::Tokens(tokens)) => format!("to judge steps, by {} tokens at placeholders", tokens.len()),
            Self::Steps(StepReadout::Vocabulary) => "to judge steps, by the tokens of the vocabulary at placeholders".to_owned(),
        }
    }
}
