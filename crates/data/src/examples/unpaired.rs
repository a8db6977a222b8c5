//! Unpaired rows for KTO: a prompt with an answer and a label.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::overlong::{CUT, Overlong};
use super::pair::{EQUAL, EQUAL_AFTER_CUT, PairColumns, PairTexts};
use super::place::RowPlace;
use super::prompt_boundary::{OTHER_PROMPT, PromptSplit, TextForm, split};
use super::row_variables::ChatColumns;
use super::tally::{ReadRows, RowOutcome};
use super::text_column::{self, TextOrMessages};
use crate::files::alpaca;
use crate::files::media;
use crate::files::missing_columns::with_remedies;
use crate::files::row_selection::{RowSelection, TooLongError};
use crate::files::rows::{FileRows, MEDIA_COLUMNS, Row};
use crate::files::unread_columns::name_unread;
use crate::template::coverage::{SYSTEM, fit_to_template, note_of_system, with_system};
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A prompt with one answer. The model reads [`Unpaired::sequence`], or [`Unpaired::mismatched`] with the answer of another row.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    pub prompt: Vec<u32>,
    /// Whole answer; a sequence has the part that fits.
    pub completion: Vec<u32>,
    /// True if the answer is desired.
    pub label: bool,
    pub row: RowPlace,
    /// Largest number of tokens of a sequence.
    max_length: usize,
}

impl Unpaired {
    /// Returns the context (at least one token) and the predicted tokens.
    pub fn sequence(&self) -> (&[u32], &[u32]) {
        self.answered_by(&self.completion)
    }

    /// Returns the prompt with the answer of another row.
    pub fn mismatched<'a>(&'a self, other: &'a Self) -> (&'a [u32], &'a [u32]) {
        self.answered_by(&other.completion)
    }

    /// Returns true if both answer the same prompt. This holds for the answers of a pair, even if the chat template ends their
    /// prompts differently.
    pub fn shares_prompt(&self, other: &Self) -> bool {
        self.row == other.row || self.prompt == other.prompt
    }

    fn answered_by<'a>(&'a self, answer: &'a [u32]) -> (&'a [u32], &'a [u32]) {
        let answer = &answer[..answer.len().min(self.max_length - self.prompt.len())];
        if self.prompt.is_empty() { answer.split_at(1) } else { (&self.prompt, answer) }
    }
}

/// The columns of unpaired rows.
#[derive(Clone, Debug)]
pub enum UnpairedColumns {
    Single {
        prompt_key: String,
        completion_key: String,
        label_key: String,
        chat: ChatColumns,
    },
    /// Pairs; each becomes two rows in order: the chosen answer (desired) and the rejected one.
    Pairs(PairColumns),
}

/// Options for turning rows into unpaired examples.
#[derive(Clone, Debug)]
pub struct UnpairedOptions {
    pub columns: UnpairedColumns,
    /// Largest number of tokens of a sequence.
    pub max_length: usize,
    /// Treatment of longer rows. It must not be [`Overlong::Left`], since an answer also follows other prompts.
    pub truncation: Overlong,
    /// Additional variables of the chat template.
    pub chat_kwargs: TemplateVariables,
    pub reading: RowSelection,
}

const FILLED: &str = "have a prompt of data.max_length tokens or more";
const TOO_LONG: &str = "have more than data.max_length tokens";
const NO_ANSWER: &str = "have an answer without tokens";

/// Reads unpaired rows, and warns about skipped rows.
///
/// # Errors
/// If a file or row cannot be read (with its place), or more than half of the rows are skipped.
pub fn load_unpaired(files: &[PathBuf], tokenizer: &Tokenizer, options: &UnpairedOptions) -> Result<Vec<Unpaired>> {
    read_unpaired(files, tokenizer, options)?.checked("rows")
}

/// Reads unpaired rows, and counts skipped rows.
///
/// # Errors
/// If a file or row cannot be read, with its place.
pub fn read_unpaired(files: &[PathBuf], tokenizer: &Tokenizer, options: &UnpairedOptions) -> Result<ReadRows<Unpaired>> {
    let UnpairedOptions { columns, max_length, truncation, chat_kwargs, reading } = options;
    let cut = (*max_length, *truncation);
    if *truncation == Overlong::Left {
        bail!("data.truncation=left is only for pairs; for unpaired rows, set error, filter or right");
    }
    let (rows, of, with, kwargs) = (open(files, columns)?, columns.clone(), tokenizer.clone(), chat_kwargs.clone());
    let (read, malformed) = reading.apply(rows).each_or(reading.on_malformed, move |_, row| {
        let place = RowPlace::for_row(&row);
        match &of {
            UnpairedColumns::Pairs(columns) => {
                let texts = PairTexts::read(&row, &with, columns, &kwargs)?;
                let mut outcomes = finish_pair(texts.splits(&with)?, cut, &place)?;
                outcomes.iter_mut().for_each(|outcome| outcome.notes.extend(texts.note(&row)));
                Ok(outcomes)
            }
            UnpairedColumns::Single { prompt_key, completion_key, label_key, chat } => {
                let (split, label) = read_row(&row, &with, [prompt_key, completion_key, label_key], chat, &kwargs)?;
                let mut outcome = finish(split, label, cut, place)?;
                let is_text = row.values.get(prompt_key).is_some_and(Value::is_string);
                outcome.notes.extend(note_of_system(&row.values).filter(|_| is_text));
                Ok(vec![outcome])
            }
        }
    })?;
    Ok(ReadRows::from_outcomes(read.into_iter().flatten().collect(), malformed))
}

fn open(files: &[PathBuf], columns: &UnpairedColumns) -> Result<FileRows> {
    match columns {
        UnpairedColumns::Pairs(columns) => super::pair::open(files, columns),
        UnpairedColumns::Single { prompt_key, completion_key, label_key, chat } => {
            let (required, optional) = (
                [prompt_key, completion_key, label_key],
                [&chat.names()[..], MEDIA_COLUMNS, &[SYSTEM], alpaca::columns(prompt_key)].concat(),
            );
            let rows = FileRows::read(files, &required.map(String::as_str), &optional);
            rows.iter().for_each(|rows| name_unread(rows, &[&required.map(String::as_str), &optional[..]].concat()));
            let settings = [
                ("data.prompt_key", prompt_key.as_str()),
                ("data.completion_key", completion_key),
                ("data.label_key", label_key),
            ];
            rows.map_err(|error| with_remedies(error, &settings))
        }
    }
}

fn read_row(
    row: &Row,
    tokenizer: &Tokenizer,
    [prompt_key, completion_key, label_key]: [&str; 3],
    chat: &ChatColumns,
    chat_kwargs: &TemplateVariables,
) -> Result<(PromptSplit, bool)> {
    media::refuse(row)?;
    let label = match row.column(label_key)? {
        Value::Bool(label) => Some(*label),
        Value::Number(number) => [(0, false), (1, true)].iter().find(|(n, _)| number.as_u64() == Some(*n)).map(|(_, l)| *l),
        _ => None,
    };
    let label = label.with_context(|| format!("column \"{label_key}\" must be true or false (also 1 or 0)"))?;
    let split = answered(row, tokenizer, [prompt_key, completion_key], chat, chat_kwargs)?;
    Ok((split, label))
}

/// Reads the columns of a prompt and its answer.
fn answered(
    row: &Row,
    tokenizer: &Tokenizer,
    [prompt_key, completion_key]: [&str; 2],
    chat: &ChatColumns,
    chat_kwargs: &TemplateVariables,
) -> Result<PromptSplit> {
    match (TextOrMessages::read(row, prompt_key)?, TextOrMessages::read(row, completion_key)?) {
        (TextOrMessages::Text(prompt), TextOrMessages::Text(answer)) => {
            let prompt = alpaca::question(row, prompt_key, &prompt);
            let whole = prompt.clone() + &answer;
            split(tokenizer, TextForm::Plain, &prompt, &whole)
        }
        (TextOrMessages::Messages(prompt), TextOrMessages::Messages(answer)) => {
            let variables = chat.variables(row, chat_kwargs)?;
            let prompt = with_system(&row.values, prompt)?;
            let prompt_length = prompt.len();
            let whole = fit_to_template([prompt, answer].concat(), false, tokenizer, &variables)?;
            let render = |messages: &[Value], asks| tokenizer.apply_chat_template(&messages.into(), asks, &variables);
            split(tokenizer, TextForm::Rendered, &render(&whole[..prompt_length], true)?, &render(&whole, false)?)
        }
        (prompt, answer) => {
            bail!(text_column::differing([(prompt_key, &prompt), (completion_key, &answer)].into_iter()))
        }
    }
}

/// Returns the two answers of a pair. Skips both if they are equal, since an answer cannot be both desired and undesired.
fn finish_pair(
    [chosen, rejected]: [PromptSplit; 2],
    cut: (usize, Overlong),
    row: &RowPlace,
) -> Result<Vec<RowOutcome<Unpaired>>> {
    let differ = [chosen.differs, rejected.differs];
    let left_out = |reason| -> Vec<_> {
        let notes = |differs: bool| Vec::from_iter(differs.then_some(OTHER_PROMPT));
        differ.map(|differs| RowOutcome { result: Err(reason), notes: notes(differs), row: row.clone() }).into()
    };
    if (&chosen.prompt, &chosen.answer) == (&rejected.prompt, &rejected.answer) {
        return Ok(left_out(EQUAL));
    }
    let both = [finish(chosen, true, cut, row.clone())?, finish(rejected, false, cut, row.clone())?];
    Ok(match &both {
        [RowOutcome { result: Ok(chosen), .. }, RowOutcome { result: Ok(rejected), .. }]
            if chosen.sequence() == rejected.sequence() =>
        {
            left_out(EQUAL_AFTER_CUT)
        }
        _ => both.into(),
    })
}

fn finish(split: PromptSplit, label: bool, cut: (usize, Overlong), row: RowPlace) -> Result<RowOutcome<Unpaired>> {
    let (max_length, truncation) = cut;
    let (given, tokens) = (split.prompt.len(), split.prompt.len() + split.answer.len());
    let mut notes = Vec::from_iter(split.differs.then_some(OTHER_PROMPT));
    let row = Unpaired { prompt: split.prompt, completion: split.answer, label, row, max_length };
    let place = row.row.clone();
    let result = match truncation {
        Overlong::Error if tokens > max_length => bail!(TooLongError(format!(
            "the row has {tokens} tokens, more than data.max_length={max_length}; raise it, or shorten such rows with \
             data.truncation=right, or skip them with data.truncation=filter"
        ))),
        Overlong::Filter if tokens > max_length => Err(TOO_LONG),
        _ if given >= max_length => Err(FILLED),
        _ if row.completion.is_empty() || given == 0 && row.completion.len() < 2 => Err(NO_ANSWER),
        _ => Ok(row),
    };
    notes.extend((result.is_ok() && tokens > max_length).then_some(CUT));
    Ok(RowOutcome { result, notes, row: place })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    /// Both answers of a pair are skipped if they are equal, also after the cut. Other pairs are two answers to one prompt.
    #[test]
    fn pairs_of_equal_answers_are_left_out() {
        let row = RowPlace { file: Arc::from(Path::new("pairs.jsonl")), index: 3 };
        let split = |answer: &[u32]| PromptSplit { prompt: vec![1, 2], answer: answer.to_vec(), differs: false };
        let read = |answers: [&[u32]; 2], cut| {
            ReadRows::from_outcomes(finish_pair(answers.map(split), cut, &row).unwrap(), Default::default())
        };
        for (answers, cut, kept, reason) in [
            ([&[5, 6, 9][..], &[5, 7, 9][..]], (4, Overlong::Right), 2, None),
            ([&[5, 6, 7, 9], &[5, 6, 8, 9]], (4, Overlong::Right), 0, Some(EQUAL_AFTER_CUT)),
            ([&[5, 6, 7, 9], &[5, 6, 8, 9]], (6, Overlong::Right), 2, None),
            ([&[5, 9], &[5, 9]], (8, Overlong::Right), 0, Some(EQUAL)),
            ([&[5, 6, 9], &[5, 6, 9]], (4, Overlong::Error), 0, Some(EQUAL)),
            ([&[5, 9], &[5, 6, 9]], (4, Overlong::Filter), 1, Some(TOO_LONG)),
        ] {
            let read = read(answers, cut);
            assert_eq!((read.kept.len(), read.tally.left_out(reason)), (kept, 2 - kept), "{answers:?} {cut:?}");
            assert!(read.kept.windows(2).all(|two| two[0].shares_prompt(&two[1])), "{answers:?} {cut:?}");
        }
    }
}
