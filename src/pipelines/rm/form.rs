//! What the settings make of a model: the head that it gets, and what is read of it.

use anyhow::{Context, Result};

use burnish_algorithm::ranking::{self, RankingLoss};
use burnish_config::RmConfig;
use burnish_config::schema::{Init, InitHead};
use burnish_data::Tokenizer;
use burnish_model::hf_config::{Classifier, HfConfig};
use burnish_model::{CausalLm, HeadInit, NewHead, Readout};

/// What a run learns.
pub enum Form {
    /// To score texts, from pairs.
    Pairs {
        loss: &'static RankingLoss,
        /// `algorithm.center_rewards_coefficient`
        center: f64,
    },
    /// To judge steps.
    Steps(StepReadout),
}

/// What is read at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepReadout {
    /// The two labels of a token classifier: wrong and right.
    Labels,
    /// The logits of these tokens of a language model.
    Tokens(Vec<u32>),
    /// The logits of all tokens.
    Vocabulary,
}

impl StepReadout {
    pub fn readout(&self) -> Readout<'_> {
        match self {
            Self::Labels => Readout::Labels,
            Self::Tokens(tokens) => Readout::Tokens(tokens),
            Self::Vocabulary => Readout::Vocabulary,
        }
    }

    /// The number of numbers that are read at each step.
    pub fn numbers(&self, model: &CausalLm) -> usize {
        match self {
            Self::Labels => 2,
            Self::Tokens(tokens) => tokens.len(),
            Self::Vocabulary => model.config.vocab_size,
        }
    }
}

/// The loss that `algorithm.loss_type` names.
///
/// # Errors
/// If there is none of this name.
pub fn loss(config: &RmConfig) -> Result<&'static RankingLoss> {
    ranking::find(&config.algorithm.loss_type).context("unknown algorithm.loss_type")
}

/// The head of the model: its number of labels and its kind; `None` for that of a language model.
///
/// # Errors
/// If the loss is unknown.
pub fn head(config: &RmConfig) -> Result<Option<(usize, Classifier)>> {
    Ok(match (loss(config)?.form, &config.data.placeholder_token) {
        (ranking::Form::Pairs(_), _) => Some((1, Classifier::Sequences)),
        (ranking::Form::Steps, None) => Some((2, Classifier::Tokens)),
        (ranking::Form::Steps, Some(_)) => None,
    })
}

/// True if the model begins with a head that `algorithm.init_head` describes.
///
/// # Errors
/// If the loss is unknown, or config.json cannot be read.
pub fn draws_head(config: &RmConfig) -> Result<bool> {
    if head(config)?.is_none() || config.model.init == Init::Random {
        return Ok(head(config)?.is_some());
    }
    Ok(HfConfig::read(config.model.path.as_path()).context("model.path")?.classifier().is_none())
}

/// The head that a language model gets.
pub fn fresh_head(kind: Classifier, init: InitHead, seed: u64) -> NewHead {
    let init = match init {
        InitHead::Normal => HeadInit::Normal,
        InitHead::Scaled => HeadInit::Scaled,
        InitHead::Zeros => HeadInit::Zeros,
    };
    NewHead { kind, init, seed }
}

/// What is read at a step.
///
/// # Errors
/// If one of `algorithm.reward_tokens` is no token, or two are the same.
pub fn step_readout(config: &RmConfig, tokenizer: &Tokenizer) -> Result<StepReadout> {
    let Some(tokens) = config.algorithm.reward_tokens.as_ref().filter(|_| config.data.placeholder_token.is_some()) else {
        let labels = config.data.placeholder_token.is_none();
        return Ok(if labels { StepReadout::Labels } else { StepReadout::Vocabulary });
    };
    let ids = tokenizer.singles(&tokens.0).context("algorithm.reward_tokens")?;
    Ok(StepReadout::Tokens(ids))
}

impl Form {
    /// # Errors
    /// If the loss is unknown, or one of `algorithm.reward_tokens` is no token.
    pub fn of(config: &RmConfig, tokenizer: &Tokenizer) -> Result<Self> {
        let loss = loss(config)?;
        Ok(match loss.form {
            ranking::Form::Pairs(_) => Self::Pairs { loss, center: config.algorithm.center_rewards_coefficient.unwrap_or(0.0) },
            ranking::Form::Steps => Self::Steps(step_readout(config, tokenizer)?),
        })
    }

    /// What a run learns, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Pairs { loss, .. } => format!("to score texts, from pairs ({})", loss.name),
            Self::Steps(StepReadout::Labels) => "to judge steps, by two labels of their last tokens".to_owned(),
            Self::Steps(StepReadout::Tokens(tokens)) => format!("to judge steps, by {} tokens at placeholders", tokens.len()),
            Self::Steps(StepReadout::Vocabulary) => "to judge steps, by the tokens of the vocabulary at placeholders".to_owned(),
        }
    }
}
