//! Texts with labels at their steps, for process reward models.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::overlong::CUT;
use super::place::RowPlace;
use super::tally::{ReadRows, RowOutcome};
use crate::files::media;
use crate::files::missing_columns::with_remedies;
use crate::files::row_selection::{RowSelection, TooLongError};
use crate::files::rows::{FileRows, MEDIA_COLUMNS, Row};
use crate::files::unread_columns::name_unread;
use crate::tokens::tokenizer::Tokenizer;

/// A text in tokens, with labels at some of them.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledSteps {
    pub ids: Vec<u32>,
    /// Labels in token order, at least one.
    pub marks: Vec<StepMark>,
    pub row: RowPlace,
}

/// The label of the text up to and including a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepMark {
    /// Position in `ids`.
    pub at: usize,
    pub label: StepLabel,
}

/// The label of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepLabel {
    /// Right or wrong.
    Right(bool),
    /// The token of the label.
    Token(u32),
    /// Probability that the step is right, from 0 to 1.
    Share(f64),
}

/// The form of the rows.
#[derive(Clone, Debug)]
pub enum StepRows {
    /// A prompt, a list of steps, and a list of as many labels (TRL). The separator follows each step, and its last token has the
    /// label.
    Lists {
        prompt_key: String,
        completions_key: String,
        labels_key: String,
        separator: String,
        /// True to keep only the label of the last step.
        last_only: bool,
    },
    /// A text with a placeholder token at each label, and a list of labels, each the text of a token or a number (OpenRLHF).
    Placeholders { input_key: String, labels_key: String, placeholder: String },
}

/// Options for turning rows into steps.
#[derive(Clone, Debug)]
pub struct StepOptions {
    pub rows: StepRows,
    /// Largest number of tokens.
    pub max_length: usize,
    /// True to cut the end of longer rows; false to refuse them.
    pub cut: bool,
    pub reading: RowSelection,
}

const NO_STEP: &str = "have no labelled step";
const NO_STEP_LEFT: &str = "have no labelled step within data.max_length tokens";

/// Note for a row that is cut before its last labelled step.
const LOST_STEPS: &str = "lose labelled steps beyond data.max_length";

/// Reads rows of steps, and warns about skipped rows.
///
/// # Errors
/// If a file or row cannot be read (with its place), or more than half of the rows are skipped.
pub fn load_steps(files: &[PathBuf], tokenizer: &Tokenizer, options: &StepOptions) -> Result<Vec<LabelledSteps>> {
    read_steps(files, tokenizer, options)?.checked("rows")
}

/// Reads rows of steps, and counts skipped rows.
///
/// # Errors
/// If a file or row cannot be read, with its place.
pub fn read_steps(files: &[PathBuf], tokenizer: &Tokenizer, options: &StepOptions) -> Result<ReadRows<LabelledSteps>> {
    let settings: Vec<(&str, &str)> = match &options.rows {
        StepRows::Lists { prompt_key, completions_key, labels_key, .. } => {
            vec![("data.prompt_key", prompt_key), ("data.completions_key", completions_key), ("data.labels_key", labels_key)]
        }
        StepRows::Placeholders { input_key, labels_key, .. } => {
            vec![("data.input_key", input_key), ("data.labels_key", labels_key)]
        }
    };
    let columns: Vec<&str> = settings.iter().map(|(_, column)| *column).collect();
    let rows = FileRows::read(files, &columns, MEDIA_COLUMNS).map_err(|error| with_remedies(error, &settings))?;
    name_unread(&rows, &columns);
    let (of, with) = (options.clone(), tokenizer.clone());
    let rows = options.reading.apply(rows);
    let (read, malformed) = rows.each_or(options.reading.on_malformed, move |_, row| read(&row, &with, &of))?;
    Ok(ReadRows::from_outcomes(read, malformed))
}

fn read(row: &Row, tokenizer: &Tokenizer, options: &StepOptions) -> Result<RowOutcome<LabelledSteps>> {
    media::refuse(row)?;
    let (mut ids, mut marks) = match &options.rows {
        StepRows::Lists { prompt_key, completions_key, labels_key, separator, last_only } => {
            let (ids, mut marks) = lists(row, tokenizer, [prompt_key, completions_key, labels_key], separator)?;
            if *last_only {
                marks.drain(..marks.len().saturating_sub(1));
            }
            (ids, marks)
        }
        StepRows::Placeholders { input_key, labels_key, placeholder } => {
            placeholders(row, tokenizer, input_key, labels_key, placeholder)?
        }
    };
    let (tokens, max) = (ids.len(), options.max_length);
    if tokens > max && !options.cut {
        bail!(TooLongError(format!(
            "the row has {tokens} tokens, more than data.max_length={max}; raise it, or cut such rows with data.truncation=right"
        )));
    }
    let judged = marks.len();
    ids.truncate(max);
    marks.retain(|mark| mark.at < max);
    let (left, place) = (marks.len(), RowPlace::for_row(row));
    let result = match left {
        0 if judged == 0 => Err(NO_STEP),
        0 => Err(NO_STEP_LEFT),
        _ => Ok(LabelledSteps { ids, marks, row: place.clone() }),
    };
    let notes = [(tokens > max, CUT), (left < judged, LOST_STEPS)];
    let notes = notes.into_iter().filter(|(holds, _)| *holds && left > 0).map(|(_, note)| note).collect();
    Ok(RowOutcome { result, notes, row: place })
}

fn list<'a>(row: &'a Row, key: &str) -> Result<&'a [Value]> {
    row.column(key)?.as_array().map(Vec::as_slice).with_context(|| format!("column \"{key}\" must be a list"))
}

fn lists(row: &Row, tokenizer: &Tokenizer, keys: [&String; 3], separator: &str) -> Result<(Vec<u32>, Vec<StepMark>)> {
    let [prompt_key, completions_key, labels_key] = keys;
    let prompt = row.column(prompt_key)?.as_str().with_context(|| format!("column \"{prompt_key}\" must be text"))?;
    let (steps, labels) = (list(row, completions_key)?, list(row, labels_key)?);
    ensure!(
        steps.len() == labels.len(),
        "column \"{completions_key}\" has {} steps, but \"{labels_key}\" has {} labels: each step needs one label",
        steps.len(),
        labels.len()
    );
    let (mut ids, separator) = (tokenizer.encode_begun(prompt)?, tokenizer.encode(separator)?);
    let mut marks = Vec::with_capacity(steps.len());
    for (i, (step, label)) in steps.iter().zip(labels).enumerate() {
        let step = step.as_str().with_context(|| format!("column \"{completions_key}\", step {i}: it must be text"))?;
        ids.extend(tokenizer.encode(step)?);
        ids.extend(&separator);
        ensure!(
            !label.is_string(),
            "column \"{labels_key}\", label {i}: it must be true, false, or a number from 0 to 1, not {label}; tokens are only labels \
             in texts with data.placeholder_token"
        );
        let label = judgement(label, tokenizer).with_context(|| format!("column \"{labels_key}\", label {i}"))?;
        let at = ids.len().checked_sub(1).with_context(|| format!("column \"{completions_key}\", step {i}: it has no token"))?;
        marks.push(StepMark { at, label });
    }
    Ok((ids, marks))
}

fn placeholders(
    row: &Row,
    tokenizer: &Tokenizer,
    input_key: &str,
    labels_key: &str,
    placeholder: &str,
) -> Result<(Vec<u32>, Vec<StepMark>)> {
    let id = tokenizer.single(placeholder).context("data.placeholder_token")?;
    let text = row.column(input_key)?.as_str().with_context(|| format!("column \"{input_key}\" must be text"))?;
    let ids = tokenizer.encode(text)?;
    let places: Vec<usize> = ids.iter().enumerate().filter(|(_, other)| **other == id).map(|(at, _)| at).collect();
    let labels = list(row, labels_key)?;
    ensure!(
        places.len() == labels.len(),
        "column \"{input_key}\" has the placeholder {placeholder:?} {} times, but \"{labels_key}\" has {} labels: each placeholder \
         needs one label",
        places.len(),
        labels.len()
    );
    let mark = |(i, (at, label)): (usize, (&usize, &Value))| {
        let label = judgement(label, tokenizer).with_context(|| format!("column \"{labels_key}\", label {i}"))?;
        Ok(StepMark { at: *at, label })
    };
    let marks = places.iter().zip(labels).enumerate().map(mark).collect::<Result<_>>()?;
    Ok((ids, marks))
}

fn judgement(label: &Value, tokenizer: &Tokenizer) -> Result<StepLabel> {
    match label {
        Value::Bool(right) => Ok(StepLabel::Right(*right)),
        Value::String(text) => Ok(StepLabel::Token(tokenizer.single(text)?)),
        Value::Number(share) => match share.as_f64().filter(|share| (0.0..=1.0).contains(share)) {
            // TRL writes labels of wrong and right steps as integers; a probability has a decimal point.
            Some(_) if share.as_u64() == Some(0) => Ok(StepLabel::Right(false)),
            Some(_) if share.as_u64() == Some(1) => Ok(StepLabel::Right(true)),
            Some(share) => Ok(StepLabel::Share(share)),
            None => bail!("a number must be from 0 to 1, not {share}"),
        },
        other => bail!("it must be true, false, the text of a token, or a number from 0 to 1, not {other}"),
    }
}
