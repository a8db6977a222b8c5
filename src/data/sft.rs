//! Supervised examples: a prompt through the chat template, then the response and the end of text, which alone are learnt.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::prompts::Truncation;
use super::rows::{Row, read_rows};
use super::tokenizer::Tokenizer;

/// One sequence. `loss_mask[t]` says whether predicting `ids[t]` is learnt; both have the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct SftExample {
    pub ids: Vec<u32>,
    pub loss_mask: Vec<bool>,
}

/// How rows become examples (verl's SFTDataset).
#[derive(Clone, Debug)]
pub struct SftOptions {
    /// Column of a list of messages, or of text, which becomes one user message.
    pub prompt_key: String,
    /// Keys followed inside the prompt column, outermost first; empty where the column itself is the prompt.
    pub prompt_dict_keys: Vec<String>,
    /// Column of the response, text.
    pub response_key: String,
    pub response_dict_keys: Vec<String>,
    /// Tokens of prompt and response together.
    pub max_length: usize,
    /// Error, left or right.
    pub truncation: Truncation,
    /// Further variables of the chat template.
    pub chat_kwargs: Map<String, Value>,
}

/// Reads `files` in order. A row whose response is cut away entirely is left out, with one warning for all.
pub fn load_sft(files: &[PathBuf], tokenizer: &Tokenizer, options: &SftOptions) -> Result<Vec<SftExample>> {
    if options.truncation == Truncation::Middle {
        bail!("truncation=middle is for prompts only; supervised examples take error, left or right");
    }
    let rows = read_rows(files, &[&options.prompt_key, &options.response_key], &[])?;
    let read = |row: &Row| read_example(row, tokenizer, options).with_context(|| row.place());
    let examples: Vec<Result<SftExample>> = rows.par_iter().map(read).collect();
    let mut examples = examples.into_iter().collect::<Result<Vec<_>>>()?;
    examples.retain(|example| example.loss_mask.iter().any(|learnt| *learnt));
    if examples.is_empty() {
        bail!("no examples: none of {} rows has a response within {} tokens", rows.len(), options.max_length);
    }
    if examples.len() < rows.len() {
        let dropped = rows.len() - examples.len();
        tracing::warn!("left out {dropped} of {} examples: truncation removed their responses", rows.len());
    }
    Ok(examples)
}

fn read_example(row: &Row, tokenizer: &Tokenizer, options: &SftOptions) -> Result<SftExample> {
    let messages = match follow(row, &options.prompt_key, &options.prompt_dict_keys)? {
        Value::String(text) => json!([{"role": "user", "content": text}]),
        messages @ Value::Array(_) => messages.clone(),
        _ => bail!("column \"{}\" must be a list of messages or text", options.prompt_key),
    };
    let response = follow(row, &options.response_key, &options.response_dict_keys)?;
    let response = response.as_str().with_context(|| format!("column \"{}\" must be text", options.response_key))?;

    let mut ids = tokenizer.encode(&tokenizer.apply_chat_template(&messages, true, &options.chat_kwargs)?)?;
    let mut loss_mask = vec![false; ids.len()];
    ids.extend(tokenizer.encode(response)?);
    ids.push(tokenizer.eos_id());
    loss_mask.resize(ids.len(), true);

    let (length, max) = (ids.len(), options.max_length);
    let too_long = || {
        anyhow!(
            "prompt and response have {length} tokens, more than data.max_length={max}; raise it, or shorten such rows \
             with data.truncation=left or right"
        )
    };
    Ok(SftExample {
        ids: options.truncation.apply(&ids, max).ok_or_else(too_long)?,
        loss_mask: options.truncation.apply(&loss_mask, max).ok_or_else(too_long)?,
    })
}

fn follow<'a>(row: &'a Row, column: &str, keys: &[String]) -> Result<&'a Value> {
    keys.iter().try_fold(row.column(column)?, |value, key| {
        let fields = value.as_object().map(|map| {
            let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
            names.sort_unstable();
            names.join(", ")
        });
        let fields = fields.unwrap_or_else(|| "none: it is no struct".into());
        value.get(key).with_context(|| format!("column \"{column}\" has no field \"{key}\"; its fields: {fields}"))
    })
}
