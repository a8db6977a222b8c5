//! The rows of preferences, from the settings of `data`.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, anyhow, ensure};

use super::example::PreferenceExample;
use super::loss::Loss;
use crate::job::unused_options::UnusedOption;
use crate::job::words::ToLayer;
use crate::pipelines::stage::{ChatKeys, RowFiles};
use burnish_config::DpoConfig;
use burnish_config::schema::{Schema, StageTruncation};
use burnish_config::{Value, defaults};
use burnish_data::Tokenizer;
use burnish_data::examples::{PairColumns, PairOptions, ScoredPart, UnpairedColumns, UnpairedOptions, load_pairs, load_unpaired};
use burnish_data::rows::FileRows;

/// Reads and tokenizes rows. Rows that are left out are counted and named in the log.
///
/// # Errors
/// If a file or row cannot be read; the message names it.
pub(super) fn read(config: &DpoConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<PreferenceExample>> {
    let data = &config.data;
    let prompt: Vec<_> = data.prompt_key.iter().map(|key| ("data.prompt_key", key.as_str())).collect();
    chat_keys(config).check::<DpoConfig>(&rows.files, &prompt)?;
    let chat_kwargs = data.apply_chat_template_kwargs.clone().into_iter().collect();
    match Loss::from_config(config)? {
        Loss::Pairs(objective) => {
            let options = PairOptions {
                columns: PairColumns {
                    gold_key: (objective.gold_coefficient() != 0.0).then(|| data.reference_key.clone()),
                    ..pair_columns(config)
                },
                answers: ScoredPart::AfterPrompt,
                max_length: data.max_length,
                truncation: data.truncation.to_layer(),
                chat_kwargs,
                reading: rows.reading,
            };
            let pairs = load_pairs(&rows.files, tokenizer, &options).map_err(|error| with_loss_of_labels(config, rows, error))?;
            Ok(pairs.into_iter().map(|pair| PreferenceExample::pair(pair, objective.reads_prompts())).collect())
        }
        Loss::Rows(objective) => {
            ensure!(
                data.truncation != StageTruncation::Left,
                "data.truncation=left is for pairs: `{}` takes error, filter or right",
                objective.loss.name
            );
            let options = UnpairedOptions {
                columns: unpaired_columns(config, rows)?,
                max_length: data.max_length,
                truncation: data.truncation.to_layer(),
                chat_kwargs,
                reading: rows.reading,
            };
            let labelled = load_unpaired(&rows.files, tokenizer, &options).map_err(|error| with_pairs(config, rows, error))?;
            if rows.training {
                warn_of_imbalance(config, labelled.iter().filter(|row| row.label).count(), labelled.len());
            }
            Ok(labelled.into_iter().map(PreferenceExample::Labelled).collect())
        }
    }
}

const NO_PROMPT: &str = "data.prompt_key=null: labelled responses need the column of their prompts; write data.prompt_key=prompt";

fn chat_keys(config: &DpoConfig) -> ChatKeys<'_> {
    ChatKeys {
        tools_key: &config.data.tools_key,
        enable_thinking_key: &config.data.enable_thinking_key,
        chat_template_kwargs_key: &config.data.chat_template_kwargs_key,
    }
}

fn pair_columns(config: &DpoConfig) -> PairColumns {
    let data = &config.data;
    PairColumns {
        prompt_key: data.prompt_key.clone(),
        chosen_key: data.chosen_key.clone(),
        rejected_key: data.rejected_key.clone(),
        gold_key: None,
        margin_key: None,
        chat: chat_keys(config).columns(),
    }
}

/// Returns the columns of labelled responses. Files without such columns are pairs, unless the settings name the columns.
fn unpaired_columns(config: &DpoConfig, rows: &RowFiles) -> Result<UnpairedColumns> {
    let data = &config.data;
    if has_pairs(config, &rows.files)? {
        return Ok(UnpairedColumns::Pairs(pair_columns(config)));
    }
    Ok(UnpairedColumns::Single {
        prompt_key: data.prompt_key.clone().context(NO_PROMPT)?,
        completion_key: data.completion_key.clone(),
        label_key: data.label_key.clone(),
        chat: chat_keys(config).columns(),
    })
}

/// Returns true if these files of a loss of labelled responses are pairs.
fn has_pairs(config: &DpoConfig, files: &[PathBuf]) -> Result<bool> {
    let data = &config.data;
    let defaults = defaults(DpoConfig::DEFAULT_NAME)?;
    let named = |key: &str, column: &str| !matches!(defaults.value(key), Some(Value::Text(default)) if default == column);
    let named = named("data.completion_key", &data.completion_key) || named("data.label_key", &data.label_key);
    if named {
        return Ok(false);
    }
    let files = FileRows::read(files, &[], &[&data.completion_key, &data.label_key, &data.chosen_key])?;
    let has = |key: &str| files.has_column(key);
    Ok(has(&data.chosen_key) && !has(&data.completion_key) && !has(&data.label_key))
}

/// Adds to the error of files without labelled responses that pairs are read, too, if the setting names their column.
fn with_pairs(config: &DpoConfig, rows: &RowFiles, error: Error) -> Error {
    let data = &config.data;
    let has = |key: &str| FileRows::read(&rows.files, &[], &[key]).is_ok_and(|files| files.has_column(key));
    if has(&data.completion_key) || has(&data.label_key) || has(&data.chosen_key) {
        return error;
    }
    anyhow!("{error:#}\n  or pairs instead of both: data.chosen_key={} is not a column", data.chosen_key)
}

/// Adds to the error of files with labelled responses instead of pairs the loss that learns from them.
fn with_loss_of_labels(config: &DpoConfig, rows: &RowFiles, error: Error) -> Error {
    let data = &config.data;
    let columns = [data.completion_key.as_str(), &data.label_key, &data.chosen_key];
    let has_labels = FileRows::read(&rows.files, &[], &columns)
        .is_ok_and(|files| columns.map(|key| files.has_column(key)) == [true, true, false]);
    if has_labels { anyhow!("{error:#}\n  or algorithm.loss_type=kto, which learns from labelled responses") } else { error }
}

/// Warns if the desirable responses together have less than 1 or more than 4/3 of the weight of the others (KTO's advice).
fn warn_of_imbalance(config: &DpoConfig, desirable: usize, all: usize) {
    let (up, down) = (config.algorithm.desirable_weight, config.algorithm.undesirable_weight);
    let (desirable, undesirable) = (desirable as f64, (all - desirable) as f64);
    let share = up * desirable / (down * undesirable);
    if desirable > 0.0 && undesirable > 0.0 && !(0.99..=1.34).contains(&share) {
        tracing::warn!(
            "{desirable} of {all} responses are desirable: together they have {share:.2} of the weight of the others, where 1 to 1.33 is \
             advised; algorithm.desirable_weight={:.2} gives 1",
            down * undesirable / desirable
        );
    }
}

/// Returns the options without effect.
///
/// # Errors
/// If the loss does not exist.
pub(super) fn unused_options(config: &DpoConfig) -> Result<Vec<UnusedOption>> {
    const PAIRS: &str = "algorithm.loss_type reads no pairs";
    const ROWS: &str = "algorithm.loss_type reads pairs";
    const LOSS: &str = "algorithm.loss_type does not read it";
    const NO_ANSWERS: &str = "algorithm.loss_type compares no answers";
    const NO_REFERENCE: &str = "algorithm.loss_type has no reference";
    const LABELLED: &str = "data.train_files has answers with a label";
    const PAIRED: &str = "data.train_files has pairs, and each pair is two responses";
    let (loss, reference) = (Loss::from_config(config)?, &config.reference);
    let of_rows = matches!(loss, Loss::Rows(_));
    // Unreadable files are reported when the run reads them.
    let paired = of_rows && has_pairs(config, &config.data.train_files.paths()).unwrap_or(false);
    let unread = |key: &'static str| !loss.entries().iter().any(|entry| entry.reads.contains(&key));
    let settings = [
        "algorithm.label_smoothing",
        "algorithm.f_divergence_type",
        "algorithm.f_alpha_divergence_coef",
        "algorithm.discopop_tau",
        "algorithm.simpo_gamma",
        "algorithm.cpo_alpha",
        "algorithm.tpo_alpha",
        "algorithm.tpo_l_gamma",
        "algorithm.alpha",
        "algorithm.desirable_weight",
        "algorithm.undesirable_weight",
    ];
    let by_loss = settings.map(|key| (unread(key), key, LOSS));
    let (without, alone) = (!loss.reads_reference(), !loss.compares());
    let other = config.algorithm.f_divergence_type != burnish_config::schema::FDivergenceType::AlphaDivergence;
    const NO_GOLD: &str = "algorithm.loss_type reads no gold answers";
    let no_gold = matches!(&loss, Loss::Rows(_)) || matches!(&loss, Loss::Pairs(pairs) if pairs.gold_coefficient() == 0.0);
    let rows = [
        (no_gold, "data.reference_key", NO_GOLD),
        (!of_rows, "data.completion_key", ROWS),
        (!of_rows, "data.label_key", ROWS),
        (of_rows && !paired, "data.chosen_key", LABELLED),
        (of_rows && !paired, "data.rejected_key", LABELLED),
        (paired, "data.completion_key", PAIRED),
        (paired, "data.label_key", PAIRED),
        (of_rows, "algorithm.loss_weights", PAIRS),
        (alone, "algorithm.beta", NO_ANSWERS),
        (alone, "algorithm.ld_alpha", NO_ANSWERS),
        (other, "algorithm.f_alpha_divergence_coef", "algorithm.f_divergence_type is not alpha_divergence"),
        (without, "ref.model.path", NO_REFERENCE),
        (without, "ref.precompute_log_prob", NO_REFERENCE),
        (without, "ref.log_prob_path", NO_REFERENCE),
        (!reference.precompute_log_prob, "ref.log_prob_path", "ref.precompute_log_prob is false"),
    ];
    Ok(by_loss.into_iter().chain(rows).collect())
}
