//! The rows of supervised fine-tuning, from the settings of `data`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::config::schema::{OneOrMany, Schema, SftDataConfig, StageTruncation};
use crate::config::{SftConfig, Value, defaults};
use crate::data::{self, SftColumns, SftExample, SftOptions, Tokenizer, Truncation, load_sft};
use crate::job::unused_options::UnusedOption;
use crate::pipelines::stage::Rows;

/// Reads and tokenizes rows.
///
/// # Errors
/// A file or row that cannot be read, with its name.
pub(in crate::pipelines) fn read(data: &SftDataConfig, tokenizer: &Tokenizer, rows: &Rows) -> Result<Vec<SftExample>> {
    let keys = |keys: &Option<OneOrMany<String>>| keys.as_ref().map(|keys| keys.0.clone()).unwrap_or_default();
    let columns = match &data.messages_key {
        Some(messages_key) => SftColumns::Messages {
            messages_key: messages_key.clone(),
            tools_key: data.tools_key.clone(),
            enable_thinking_key: data.enable_thinking_key.clone(),
        },
        None => SftColumns::Response {
            prompt_key: data.prompt_key.clone(),
            prompt_dict_keys: keys(&data.prompt_dict_keys),
            response_key: data.response_key.clone(),
            response_dict_keys: keys(&data.response_dict_keys),
        },
    };
    let options = SftOptions {
        columns,
        max_length: data.max_length,
        truncation: truncation(data.truncation),
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
    };
    let examples = load_sft(&rows.files, tokenizer, &options)?;
    check_optional_columns(data, &rows.files)?;
    Ok(examples)
}

fn truncation(word: StageTruncation) -> Truncation {
    match word {
        // The configuration refuses `filter` here.
        StageTruncation::Error | StageTruncation::Filter => Truncation::Error,
        StageTruncation::Left => Truncation::Left,
        StageTruncation::Right => Truncation::Right,
    }
}

/// The options of `data` that have no effect beside the others.
pub(in crate::pipelines) fn unused_options(data: &SftDataConfig) -> Vec<UnusedOption> {
    let talks = data.messages_key.is_some();
    let (instead, alone) = ("data.messages_key is read instead", "it needs data.messages_key");
    vec![
        (talks, "data.prompt_key", instead),
        (talks, "data.prompt_dict_keys", instead),
        (talks, "data.response_key", instead),
        (talks, "data.response_dict_keys", instead),
        (!talks, "data.tools_key", alone),
        (!talks, "data.enable_thinking_key", alone),
    ]
}

/// Checks the optional columns. The columns of a conversation's tools and thinking may be missing, unless a setting names another
/// column than the default.
fn check_optional_columns(data: &SftDataConfig, files: &[PathBuf]) -> Result<()> {
    if data.messages_key.is_none() {
        return Ok(());
    }
    let defaults = defaults(SftConfig::DEFAULT_NAME)?;
    for (key, column) in [("data.tools_key", &data.tools_key), ("data.enable_thinking_key", &data.enable_thinking_key)] {
        let is_default = matches!(defaults.value(key), Some(Value::Text(default)) if default == column);
        if !is_default && !data::rows::Rows::read(files, &[], &[column])?.has_column(column) {
            // The column is read as a required one, so that the error names the columns that exist.
            data::rows::Rows::read(files, &[column], &[]).context(key)?;
        }
    }
    Ok(())
}
