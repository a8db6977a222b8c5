//! Pairs: a prompt with a chosen and a rejected answer, for preference losses and reward models.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::overlong::{CUT, Overlong};
use super::place::RowPlace;
use super::prompt_boundary::{OTHER_PROMPT, PromptSplit, TextForm, alike, common, split_after};
use super::row_variables::ChatColumns;
use super::tally::{ReadRows, RowOutcome};
use super::text_column::{self, TextOrMessages};
use crate::files::alpaca;
use crate::files::media;
use crate::files::missing_columns::with_remedies;
use crate::files::row_selection::{RowSelection, TooLongError};
use crate::files::rows::{FileRows, MEDIA_COLUMNS, Row};
use crate::files::unread_columns::name_unread;
use crate::template::content;
use crate::template::coverage::{SYSTEM, fit_to_template, note_of_system, with_system};
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A pair in tokens. The model reads its [`TokenizedPair::sides`].
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizedPair {
    /// Common beginning of both sides; may be empty.
    pub prompt: Vec<u32>,
    /// Never empty, like `rejected`.
    pub chosen: Vec<u32>,
    pub rejected: Vec<u32>,
    /// Gold answer after the same prompt, never empty; `None` if it is not read.
    gold: Option<Vec<u32>>,
    /// Margin by which the chosen answer is better; `None` if the row does not say.
    pub margin: Option<f64>,
    pub row: RowPlace,
    /// Number of tokens cut off at the beginning of each side, and of the prompt with the gold answer.
    cut: [usize; 3],
}

impl TokenizedPair {
    /// Returns the chosen and the rejected side, each as context (at least one token) and predicted tokens.
    pub fn sides(&self) -> [(&[u32], &[u32]); 2] {
        [(&self.chosen, self.cut[0]), (&self.rejected, self.cut[1])].map(|(answer, cut)| side(&self.prompt, answer, cut))
    }

    /// Returns the gold answer as context (at least one token) and predicted tokens, if the row has one.
    pub fn gold(&self) -> Option<(&[u32], &[u32])> {
        self.gold.as_ref().map(|gold| side(&self.prompt, gold, self.cut[2]))
    }

    /// Returns the number of tokens of the longest side, before cuts.
    fn longest(&self) -> usize {
        let gold = self.gold.as_ref().map_or(0, Vec::len);
        self.prompt.len() + self.chosen.len().max(self.rejected.len()).max(gold)
    }
}

/// Returns the prompt and the answer after cutting `cut` tokens. Without a prompt, the first token takes its place.
fn side<'a>(prompt: &'a [u32], answer: &'a [u32], cut: usize) -> (&'a [u32], &'a [u32]) {
    match prompt.get(cut..).filter(|rest| !rest.is_empty()) {
        Some(rest) => (rest, answer),
        None => answer[cut - prompt.len()..].split_at(1),
    }
}

/// The columns of a pair.
#[derive(Clone, Debug)]
pub struct PairColumns {
    /// Column of the prompt (text or messages). A row without a prompt, or with a text prompt and conversations as answers, has
    /// the prompt at the beginning of both answers. `None` = no column.
    pub prompt_key: Option<String>,
    pub chosen_key: String,
    pub rejected_key: String,
    /// Column of a gold answer, which needs a prompt column; `None` = no column.
    pub gold_key: Option<String>,
    /// Column of a number; `None` = no column.
    pub margin_key: Option<String>,
    pub chat: ChatColumns,
}

/// The part of a side that is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoredPart {
    /// The tokens after the prompt (preference losses), so the prompt boundary matters.
    AfterPrompt,
    /// The whole side (reward models), tokenized as one text; `TokenizedPair::prompt` is the common beginning.
    Whole,
}

/// Options for turning rows into pairs: the `data` section of `trainer dpo` and `trainer rm`.
#[derive(Clone, Debug)]
pub struct PairOptions {
    pub columns: PairColumns,
    pub answers: ScoredPart,
    /// Largest number of tokens of a side, including the prompt.
    pub max_length: usize,
    pub truncation: Overlong,
    /// Additional variables of the chat template.
    pub chat_kwargs: TemplateVariables,
    pub reading: RowSelection,
}

/// Setting of the column of gold answers.
const REFERENCE_KEY: &str = "data.reference_key";

const FILLED: &str = "have a prompt of data.max_length tokens or more";
const TOO_LONG: &str = "have a side of more than data.max_length tokens";
pub(super) const EQUAL: &str = "have two equal answers";
pub(super) const EQUAL_AFTER_CUT: &str = "have two answers that are equal after the cut at data.max_length";
const NO_ANSWER: &str = "have an answer without tokens";

/// Note for a pair whose whole sides are scored and have no common prompt.
const NO_PROMPT: &str = "have no prompt, and answers without a common beginning: only the answers are scored; set data.prompt_key to the \
                         column of prompts";

/// Reads pairs, and warns about skipped rows.
///
/// # Errors
/// If a file or row cannot be read (with its place), or more than half of the rows are skipped.
pub fn load_pairs(files: &[PathBuf], tokenizer: &Tokenizer, options: &PairOptions) -> Result<Vec<TokenizedPair>> {
    read_pairs(files, tokenizer, options)?.checked("pairs")
}

/// Reads pairs, and counts skipped rows.
///
/// # Errors
/// If a file or row cannot be read, with its place.
pub fn read_pairs(files: &[PathBuf], tokenizer: &Tokenizer, options: &PairOptions) -> Result<ReadRows<TokenizedPair>> {
    let (rows, of, with) = (options.reading.apply(open(files, &options.columns)?), options.clone(), tokenizer.clone());
    let (read, malformed) = rows.each_or(options.reading.on_malformed, move |_, row| read(&row, &with, &of))?;
    Ok(ReadRows::from_outcomes(read, malformed))
}

/// Opens files with the columns of pairs.
pub(super) fn open(files: &[PathBuf], columns: &PairColumns) -> Result<FileRows> {
    let prompt: Vec<&str> = columns.prompt_key.iter().map(String::as_str).collect();
    let question = prompt.iter().flat_map(|key| alpaca::columns(key)).copied().collect();
    let optional = [prompt, question, columns.chat.names(), MEDIA_COLUMNS.to_vec(), vec![SYSTEM]].concat();
    let margin = columns.margin_key.iter().map(|key| ("data.margin_key", key.as_str()));
    let answers = [("data.chosen_key", columns.chosen_key.as_str()), ("data.rejected_key", &columns.rejected_key)];
    let gold = columns.gold_key.iter().map(|key| (REFERENCE_KEY, key.as_str()));
    let settings: Vec<(&str, &str)> = answers.into_iter().chain(margin).chain(gold).collect();
    let required: Vec<&str> = settings.iter().map(|(_, column)| *column).collect();
    let rows = FileRows::read(files, &required, &optional).map_err(|error| with_remedies(error, &settings))?;
    name_unread(&rows, &[required, optional].concat());
    Ok(rows)
}

fn read(row: &Row, tokenizer: &Tokenizer, options: &PairOptions) -> Result<RowOutcome<TokenizedPair>> {
    let texts = PairTexts::read(row, tokenizer, &options.columns, &options.chat_kwargs)?;
    let (place, mut notes) = (RowPlace::for_row(row), Vec::new());
    notes.extend(texts.note(row));
    let PairTokens { prompt, answers: [chosen, rejected] } = match options.answers {
        ScoredPart::Whole => {
            notes.extend(texts.prompt.is_none().then_some(NO_PROMPT));
            texts.full(tokenizer)?
        }
        ScoredPart::AfterPrompt => {
            let splits = texts.splits(tokenizer)?;
            notes.extend(splits.iter().any(|split| split.differs).then_some(OTHER_PROMPT));
            PairTokens::after_prompt(splits)
        }
    };
    let margin = options.columns.margin_key.as_ref().map(|key| margin(row, key)).transpose()?.flatten();
    let gold = options.columns.gold_key.as_ref().map(|key| gold(row, key, &prompt, tokenizer, options)).transpose()?;
    let pair = TokenizedPair { prompt, chosen, rejected, gold, margin, row: place.clone(), cut: [0; 3] };
    let longest = pair.longest();
    let result = cut(pair, options)?;
    notes.extend((result.is_ok() && longest > options.max_length).then_some(CUT));
    Ok(RowOutcome { result, notes, row: place })
}

/// Reads the gold answer in column `key`, to the same prompt as the pair.
fn gold(row: &Row, key: &str, prompt: &[u32], tokenizer: &Tokenizer, options: &PairOptions) -> Result<Vec<u32>> {
    let columns = PairColumns { rejected_key: key.to_owned(), ..options.columns.clone() };
    let has_prompt = columns.prompt_key.as_ref().is_some_and(|key| row.values.get(key).is_some_and(|value| !value.is_null()));
    ensure!(has_prompt, "column \"{key}\" is an answer without its prompt: set data.prompt_key to the column of prompts");
    let [_, split] = PairTexts::read(row, tokenizer, &columns, &options.chat_kwargs)?.splits(tokenizer)?;
    let whole = [split.prompt, split.answer].concat();
    let Some(answer) = whole.strip_prefix(prompt).filter(|answer| !answer.is_empty()) else {
        bail!("the answer in column \"{key}\" does not begin with the prompt that the other answers have")
    };
    Ok(answer.to_vec())
}

/// Cuts the sides to `max_length`. The inner error is the reason for skipping the pair.
fn cut(mut pair: TokenizedPair, options: &PairOptions) -> Result<Result<TokenizedPair, &'static str>> {
    let (max, given, longest) = (options.max_length, pair.prompt.len(), pair.longest());
    if given == 0 && (pair.chosen.is_empty() || pair.rejected.is_empty()) {
        return Ok(Err(NO_ANSWER));
    }
    if pair.chosen == pair.rejected {
        return Ok(Err(EQUAL));
    }
    if longest > max {
        match options.truncation {
            Overlong::Error => bail!(TooLongError(format!(
                "a side has {longest} tokens, more than data.max_length={max}; raise it, or shorten such rows with \
                 data.truncation=right or left, or leave them out with data.truncation=filter"
            ))),
            Overlong::Filter => return Ok(Err(TOO_LONG)),
            Overlong::Right if given >= max => {
                return Ok(Err(match options.answers {
                    ScoredPart::AfterPrompt => FILLED,
                    // The prompt is the common beginning of both sides, including their answers.
                    ScoredPart::Whole => EQUAL_AFTER_CUT,
                }));
            }
            Overlong::Right => {
                pair.chosen.truncate(max - given);
                pair.rejected.truncate(max - given);
                if let Some(gold) = &mut pair.gold {
                    gold.truncate(max - given);
                }
            }
            Overlong::Left => {
                let gold = pair.gold.as_deref().unwrap_or_default();
                pair.cut = [&pair.chosen[..], &pair.rejected, gold].map(|answer| (given + answer.len()).saturating_sub(max));
            }
        }
    }
    let [chosen, rejected] = pair.sides();
    let equal = chosen == rejected;
    Ok(match () {
        () if equal => Err(EQUAL_AFTER_CUT),
        () if chosen.1.is_empty() || rejected.1.is_empty() => Err(NO_ANSWER),
        () => Ok(pair),
    })
}

fn margin(row: &Row, key: &str) -> Result<Option<f64>> {
    match row.values.get(key) {
        // Other rows of the file have this column. In a table, the value of this row would be null.
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .filter(|margin| margin.is_finite())
            .map(Some)
            .with_context(|| format!("column \"{key}\" must be a number (how much better the chosen answer is) or null")),
    }
}

/// The texts of a pair, ready for tokenization.
pub(super) struct PairTexts {
    form: TextForm,
    /// The prompt; `None` if the row has no prompt and its answers have no common beginning.
    prompt: Option<String>,
    /// Prompt and answer of each side.
    wholes: [String; 2],
}

impl PairTexts {
    pub(super) fn read(row: &Row, tokenizer: &Tokenizer, columns: &PairColumns, chat_kwargs: &TemplateVariables) -> Result<Self> {
        media::refuse(row)?;
        let answers = (TextOrMessages::read(row, &columns.chosen_key)?, TextOrMessages::read(row, &columns.rejected_key)?);
        let key = columns.prompt_key.as_deref().filter(|key| row.values.get(*key).is_some_and(|value| !value.is_null()));
        let prompt = key.map(|key| TextOrMessages::read(row, key)).transpose()?;
        match (prompt, answers) {
            (None, (TextOrMessages::Text(chosen), TextOrMessages::Text(rejected))) => {
                let prompt = begin_alike(&chosen, &rejected);
                let prompt = (!prompt.is_empty()).then(|| prompt.to_owned());
                Ok(Self { form: TextForm::Plain, prompt, wholes: [chosen, rejected] })
            }
            (Some(TextOrMessages::Text(prompt)), (TextOrMessages::Text(chosen), TextOrMessages::Text(rejected))) => {
                let prompt = alpaca::question(row, key.unwrap_or_default(), &prompt);
                let wholes = [chosen, rejected].map(|answer| prompt.clone() + &answer);
                Ok(Self { form: TextForm::Plain, prompt: Some(prompt), wholes })
            }
            (
                column @ (None | Some(TextOrMessages::Text(_))),
                (TextOrMessages::Messages(chosen), TextOrMessages::Messages(rejected)),
            ) => {
                let same = chosen.iter().zip(&rejected).take_while(|(a, b)| a == b).count();
                let same = same.min(chosen.len().min(rejected.len()).saturating_sub(1));
                let prompt = chosen[..same].to_vec();
                if let (Some(key), Some(TextOrMessages::Text(text))) = (key, &column) {
                    // Many data sets repeat the common beginning of both conversations as text.
                    ensure!(
                        prompt.iter().any(|message| says(message, text)),
                        "column \"{key}\" is text, but the conversations do not begin with it: write it as a list of messages, or set \
                         data.prompt_key=null if the conversations are complete without it"
                    );
                }
                Self::rendered(row, tokenizer, columns, chat_kwargs, prompt, [chosen, rejected])
            }
            (Some(TextOrMessages::Messages(prompt)), (TextOrMessages::Messages(chosen), TextOrMessages::Messages(rejected))) => {
                let wholes = [chosen, rejected].map(|answer| [prompt.clone(), answer].concat());
                Self::rendered(row, tokenizer, columns, chat_kwargs, prompt, wholes)
            }
            (prompt, (chosen, rejected)) => {
                let prompt = key.zip(prompt.as_ref());
                let answers = [(columns.chosen_key.as_str(), &chosen), (columns.rejected_key.as_str(), &rejected)];
                bail!(text_column::differing(prompt.into_iter().chain(answers)))
            }
        }
    }

    fn rendered(
        row: &Row,
        tokenizer: &Tokenizer,
        columns: &PairColumns,
        chat_kwargs: &TemplateVariables,
        prompt: Vec<Value>,
        wholes: [Vec<Value>; 2],
    ) -> Result<Self> {
        let variables = columns.chat.variables(row, chat_kwargs)?;
        let render = |messages: &[Value], asks| tokenizer.apply_chat_template(&messages.into(), asks, &variables);
        let full = |messages: Vec<Value>| fit_to_template(with_system(&row.values, messages)?, false, tokenizer, &variables);
        let prompt_length = if prompt.is_empty() { 0 } else { with_system(&row.values, prompt)?.len() };
        let [chosen, rejected] = wholes;
        let (chosen, rejected) = (full(chosen)?, full(rejected)?);
        let prompt = (prompt_length > 0).then(|| render(&chosen[..prompt_length], true)).transpose()?;
        Ok(Self { form: TextForm::Rendered, prompt, wholes: [render(&chosen, false)?, render(&rejected, false)?] })
    }

    /// Returns the note for a row of plain texts with a system message.
    pub(super) fn note(&self, row: &Row) -> Option<&'static str> {
        note_of_system(&row.values).filter(|_| self.form == TextForm::Plain)
    }

    /// Splits each side into prompt and answer.
    ///
    /// # Errors
    /// If the prompt cannot be separated from the answers.
    pub(super) fn splits(&self, tokenizer: &Tokenizer) -> Result<[PromptSplit; 2]> {
        let Some(prompt) = &self.prompt else {
            bail!(
                "the row has no prompt, and the two answers have no common beginning; set data.prompt_key to the column of prompts"
            );
        };
        let prompt_ids = self.form.encode(tokenizer, prompt)?;
        let split = |full| split_after(tokenizer, self.form, prompt, &prompt_ids, full);
        Ok([split(&self.wholes[0])?, split(&self.wholes[1])?])
    }

    /// Returns the common beginning of both sides, and the rest of each side, which has at least one token.
    fn full(&self, tokenizer: &Tokenizer) -> Result<PairTokens> {
        let [chosen, rejected] = &self.wholes;
        let mut sides = [self.form.encode_full(tokenizer, chosen)?, self.form.encode_full(tokenizer, rejected)?];
        let same = common(&sides[0], &sides[1]).min(sides[0].len().min(sides[1].len()).saturating_sub(1));
        let answers = sides.each_mut().map(|side| side.split_off(same));
        let [prompt, _] = sides;
        Ok(PairTokens { prompt, answers })
    }
}

/// A prompt with two answers.
struct PairTokens {
    prompt: Vec<u32>,
    answers: [Vec<u32>; 2],
}

impl PairTokens {
    /// Joins two sides. If their prompts differ, the common beginning is the prompt.
    fn after_prompt([chosen, rejected]: [PromptSplit; 2]) -> Self {
        let same = common(&chosen.prompt, &rejected.prompt);
        let answers = [&chosen, &rejected].map(|side| [&side.prompt[same..], &side.answer].concat());
        Self { prompt: chosen.prompt[..same].to_vec(), answers }
    }
}

/// Returns the common beginning of two texts, without a space right before the difference, which belongs to the answers.
fn begin_alike<'a>(a: &'a str, b: &str) -> &'a str {
    let same = alike(a, b);
    same.strip_suffix(' ').unwrap_or(same)
}

/// Returns true if the content of a message is this text, ignoring surrounding spaces.
fn says(message: &Value, text: &str) -> bool {
    content::joined(message)["content"].as_str().is_some_and(|content| content.trim() == text.trim())
}
