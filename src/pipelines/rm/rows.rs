//! The rows of a reward model, from the settings of `data`.

use anyhow::{Context, Result, bail};

use super::example::{RmExample, StepExample};
use super::form::{StepReadout, draws_head, loss, step_readout};
use crate::job::unused_options::UnusedOption;
use crate::job::words::ToLayer;
use crate::pipelines::stage::{ChatKeys, RowFiles};
use burnish_algorithm::ranking::{RankingForm, StepTarget};
use burnish_config::RmConfig;
use burnish_config::schema::StageTruncation;
use burnish_data::examples::{
    LabelledSteps, PairColumns, PairOptions, ScoredPart, StepLabel, StepOptions, StepRows, load_pairs, load_steps,
};
use burnish_data::{RowSelection, Tokenizer};

/// Reads and tokenizes rows. Rows that are left out are counted and named in the log.
///
/// # Errors
/// If a file or row cannot be read; the message names it.
pub(super) fn read(config: &RmConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<RmExample>> {
    match loss(config)?.form {
        RankingForm::Pairs(_) => {
            let prompt: Vec<_> = config.data.prompt_key.iter().map(|key| ("data.prompt_key", key.as_str())).collect();
            chat_keys(config).check::<RmConfig>(&rows.files, &prompt)?;
            let pairs = load_pairs(&rows.files, tokenizer, &PairOptions { reading: rows.reading, ..pair_options(config)? })?;
            Ok(pairs.into_iter().map(RmExample::Pair).collect())
        }
        RankingForm::Steps => {
            let readout = step_readout(config, tokenizer)?;
            let texts = load_steps(&rows.files, tokenizer, &step_options(config, rows))?;
            texts.into_iter().map(|text| judged(text, &readout, config).map(RmExample::Steps)).collect()
        }
    }
}

fn pair_options(config: &RmConfig) -> Result<PairOptions> {
    let data = &config.data;
    let has_margin = loss(config)?.reads.contains(&"data.margin_key");
    Ok(PairOptions {
        columns: PairColumns {
            prompt_key: data.prompt_key.clone(),
            chosen_key: data.chosen_key.clone(),
            rejected_key: data.rejected_key.clone(),
            gold_key: None,
            margin_key: data.margin_key.clone().filter(|_| has_margin),
            chat: chat_keys(config).columns(),
        },
        answers: ScoredPart::Whole,
        max_length: data.max_length,
        truncation: data.truncation.to_layer(),
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
        reading: RowSelection::default(),
    })
}

fn chat_keys(config: &RmConfig) -> ChatKeys<'_> {
    ChatKeys {
        tools_key: &config.data.tools_key,
        enable_thinking_key: &config.data.enable_thinking_key,
        chat_template_kwargs_key: &config.data.chat_template_kwargs_key,
    }
}

fn step_options(config: &RmConfig, of: &RowFiles) -> StepOptions {
    let data = &config.data;
    let rows = match &data.placeholder_token {
        Some(placeholder) => StepRows::Placeholders {
            input_key: data.input_key.clone(),
            labels_key: data.labels_key.clone(),
            placeholder: placeholder.clone(),
        },
        None => StepRows::Lists {
            prompt_key: data.prompt_key.clone().unwrap_or_default(),
            completions_key: data.completions_key.clone(),
            labels_key: data.labels_key.clone(),
            separator: data.step_separator.clone(),
            last_only: of.training && data.train_on_last_step_only,
        },
    };
    StepOptions { rows, max_length: data.max_length, cut: data.truncation == StageTruncation::Right, reading: of.reading }
}

/// Returns the text with its judgements as the targets of the loss.
fn judged(text: LabelledSteps, readout: &StepReadout, config: &RmConfig) -> Result<StepExample> {
    let vocabulary = config.algorithm.reward_tokens.is_none();
    let target = |(step, label)| {
        target(label, readout).with_context(|| {
            let needs = if vocabulary { "; algorithm.reward_tokens names the tokens that judge" } else { "" };
            format!("{}: column \"{}\", label {step}{needs}", text.row, config.data.labels_key)
        })
    };
    let targets = text.marks.iter().map(|mark| mark.label).enumerate().map(target).collect::<Result<_>>()?;
    Ok(StepExample { at: text.marks.iter().map(|mark| mark.at).collect(), targets, ids: text.ids })
}

/// Returns the judgement of a step. The second of two labels means right (TRL), the first of two tokens does (OpenRLHF).
fn target(label: StepLabel, readout: &StepReadout) -> Result<StepTarget> {
    Ok(match (label, readout) {
        (StepLabel::Right(right), StepReadout::Labels) => StepTarget::Class(usize::from(right)),
        (StepLabel::Share(share), StepReadout::Labels) => StepTarget::Shares([1.0 - share, share]),
        (StepLabel::Right(right), StepReadout::Tokens(tokens)) if tokens.len() == 2 => StepTarget::Class(usize::from(!right)),
        (StepLabel::Share(share), StepReadout::Tokens(tokens)) if tokens.len() == 2 => StepTarget::Shares([share, 1.0 - share]),
        (StepLabel::Token(id), StepReadout::Tokens(tokens)) => match tokens.iter().position(|token| *token == id) {
            Some(class) => StepTarget::Class(class),
            None => bail!("it is not one of algorithm.reward_tokens"),
        },
        (StepLabel::Token(id), StepReadout::Vocabulary) => StepTarget::Class(id as usize),
        (StepLabel::Token(_), StepReadout::Labels) => bail!("it is a token, which needs data.placeholder_token"),
        (StepLabel::Right(_) | StepLabel::Share(_), _) => bail!("true, false and shares need exactly two reward tokens"),
    })
}

/// Returns the options without effect.
///
/// # Errors
/// If the loss is unknown, or config.json cannot be read.
pub(super) fn unused_options(config: &RmConfig) -> Result<Vec<UnusedOption>> {
    let loss = loss(config)?;
    let steps = matches!(loss.form, RankingForm::Steps);
    let (lists, placeholders) =
        (steps && config.data.placeholder_token.is_none(), steps && config.data.placeholder_token.is_some());
    const PAIRS: &str = "algorithm.loss_type reads no pairs";
    const STEPS: &str = "algorithm.loss_type reads no steps";
    const LISTS: &str = "data.placeholder_token marks the steps in data.input_key";
    let margin = !loss.reads.contains(&"data.margin_key");
    let rows = [
        (steps, "data.chosen_key", PAIRS),
        (steps, "data.rejected_key", PAIRS),
        (margin, "data.margin_key", if steps { PAIRS } else { "algorithm.loss_type=logexp has no margin" }),
        (steps, "algorithm.center_rewards_coefficient", PAIRS),
        (steps, "data.tools_key", "texts with steps have no chat template"),
        (steps, "data.enable_thinking_key", "texts with steps have no chat template"),
        (steps, "data.chat_template_kwargs_key", "texts with steps have no chat template"),
        (steps, "data.apply_chat_template_kwargs", "texts with steps have no chat template"),
        (steps, "data.chat_template_date", "texts with steps have no chat template"),
        (!steps, "data.labels_key", STEPS),
        (!steps, "data.placeholder_token", STEPS),
        (!lists, "data.completions_key", if steps { LISTS } else { STEPS }),
        (!lists, "data.step_separator", if steps { LISTS } else { STEPS }),
        (!lists, "data.train_on_last_step_only", if steps { LISTS } else { STEPS }),
        (placeholders, "data.prompt_key", LISTS),
        (placeholders, "algorithm.init_head", "a language model keeps its own head"),
        (!draws_head(config)?, "algorithm.init_head", "model.path is a reward model, which keeps its head"),
        (!placeholders, "data.input_key", if steps { "it needs data.placeholder_token" } else { STEPS }),
        (!placeholders, "algorithm.reward_tokens", if steps { "it needs data.placeholder_token" } else { STEPS }),
    ];
    Ok(rows.into())
}
