//! Reads files of supervised rows.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::options::{SftColumns, SftOptions};
use super::tokens::SftTokens;
use super::{answer, conversation, text};
use crate::examples::document::Document;
use crate::files::alpaca;

use crate::examples::overlong::{CUT, Overlong};
use crate::examples::place::RowPlace;
use crate::examples::tally::{ReadRows, RowOutcome};
use crate::files::conversations::WrittenConversation;
use crate::files::media;
use crate::files::missing_columns::{MESSAGES_KEY, with_remedies};
use crate::files::row_selection::TooLongError;
use crate::files::rows::{FileRows, MEDIA_COLUMNS, Row};
use crate::files::unread_columns::name_unread;
use crate::template::coverage::{SYSTEM, with_system};
use crate::tokens::tokenizer::Tokenizer;

const TOO_LONG: &str = "have more than data.max_length tokens";
const NOTHING: &str = "have no trained token";
const NOTHING_LEFT: &str = "have no trained token within data.max_length tokens";

/// Reads `files` in order, and warns about skipped rows.
///
/// # Errors
/// If a file or row cannot be read (with its place), or more than half of the rows are skipped.
pub fn load_sft(files: &[PathBuf], tokenizer: &Tokenizer, options: &SftOptions) -> Result<Vec<Document>> {
    read_sft(files, tokenizer, options)?.checked("examples")
}

/// Reads `files` in order, and counts skipped rows.
///
/// # Errors
/// If a file or row cannot be read, with its place.
pub fn read_sft(files: &[PathBuf], tokenizer: &Tokenizer, options: &SftOptions) -> Result<ReadRows<Document>> {
    let rows = options.reading.apply(open(files, options)?);
    let (of, with) = (options.clone(), tokenizer.clone());
    let (outcomes, malformed) = rows.each_or(options.reading.on_malformed, move |_, row| {
        media::refuse(&row)?;
        let outcome = |SftTokens { document, mut notes }: SftTokens| {
            let is_longer = document.ids.len() > of.max_length;
            let result = cut(document, &of)?;
            notes.extend((is_longer && result.is_ok()).then_some(CUT));
            Ok(RowOutcome { result, notes, row: RowPlace::for_row(&row) })
        };
        tokens(&row, &with, &of)?.into_iter().map(outcome).collect::<Result<Vec<_>>>()
    })?;
    Ok(ReadRows::from_outcomes(outcomes.into_iter().flatten().collect(), malformed))
}

pub(super) fn open(files: &[PathBuf], options: &SftOptions) -> Result<FileRows> {
    let columns: Vec<(&str, &str)> = match &options.columns {
        SftColumns::Text { text_key } => vec![("data.text_key", text_key)],
        SftColumns::Completion { prompt_key, completion_key } => {
            vec![("data.prompt_key", prompt_key), ("data.completion_key", completion_key)]
        }
        SftColumns::Response { prompt_key, response_key, .. } => {
            vec![("data.prompt_key", prompt_key), ("data.response_key", response_key)]
        }
        SftColumns::Messages { messages_key } => vec![(MESSAGES_KEY, messages_key)],
    };
    let required: Vec<&str> = columns.iter().map(|(_, column)| *column).collect();
    // A plain text has no system message, and only the text is read.
    let more: &[&str] = match &options.columns {
        SftColumns::Text { .. } => &[],
        SftColumns::Messages { .. } => &[SYSTEM],
        SftColumns::Completion { prompt_key, .. } | SftColumns::Response { prompt_key, .. } => {
            &[&[SYSTEM][..], alpaca::columns_with_history(prompt_key)].concat()
        }
    };
    let optional = [&options.chat.names()[..], MEDIA_COLUMNS, more].concat();
    let rows = FileRows::read(files, &required, &optional);
    rows.iter().for_each(|rows| name_unread(rows, &[&required[..], &optional].concat()));
    // Instead of a prompt and a response, the row may have a whole conversation.
    let talks = matches!(options.columns, SftColumns::Response { .. }).then_some((MESSAGES_KEY, ""));
    rows.map_err(|error| with_remedies(error, &columns.into_iter().chain(talks).collect::<Vec<_>>()))
}

/// Returns the examples of a row: one, or one per conversation written by `trainer generate`.
pub(super) fn tokens(row: &Row, tokenizer: &Tokenizer, options: &SftOptions) -> Result<Vec<SftTokens>> {
    let one = match &options.columns {
        SftColumns::Text { text_key } => text::read(row, text_key, tokenizer),
        SftColumns::Completion { prompt_key, completion_key } => {
            answer::completion(row, prompt_key, completion_key, tokenizer, options)
        }
        SftColumns::Response { prompt_key, prompt_dict_keys, response_key, response_dict_keys } => {
            let (prompt, response) =
                ((prompt_key.as_str(), &prompt_dict_keys[..]), (response_key.as_str(), &response_dict_keys[..]));
            answer::response(row, prompt, response, tokenizer, options)
        }
        SftColumns::Messages { messages_key } => {
            let variables = options.chat.variables(row, &options.chat_kwargs)?;
            let (messages, place) = (row.column(messages_key)?, || format!("column \"{messages_key}\""));
            if let Some(written) = WrittenConversation::listed(messages) {
                let read = |one: &WrittenConversation| conversation::written(one, tokenizer, variables.clone(), options);
                return written.iter().map(read).collect::<Result<_>>().with_context(place);
            }
            let messages = conversation::listed(messages).and_then(|list| with_system(&row.values, list));
            let read = messages.and_then(|messages| conversation::column(messages, tokenizer, &variables, options));
            read.with_context(place)
        }
    };
    Ok(vec![one?])
}

/// Cuts a document to `max_length`. The inner error is the reason for skipping the row.
pub(super) fn cut(mut document: Document, options: &SftOptions) -> Result<Result<Document, &'static str>> {
    let (length, max) = (document.ids.len(), options.max_length);
    if length > max {
        match options.overlong {
            Overlong::Error => bail!(TooLongError(format!(
                "the example has {length} tokens, more than data.max_length={max}; raise it, or shorten such rows with \
                 data.truncation=left or right, or skip them with data.truncation=filter"
            ))),
            Overlong::Filter => return Ok(Err(TOO_LONG)),
            Overlong::Left => {
                document.ids.drain(..length - max);
                document.weights.drain(..length - max);
            }
            Overlong::Right => {
                document.ids.truncate(max);
                document.weights.truncate(max);
            }
        }
    }
    Ok(match document.learns() {
        true => Ok(document),
        false => Err(if length > max { NOTHING_LEFT } else { NOTHING }),
    })
}
