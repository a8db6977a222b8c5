//! Prompts for reinforcement learning: verl-schema rows rendered, tokenized, filtered and truncated.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::rows::{Row, read_rows};
use super::tokenizer::Tokenizer;
use crate::util::rng::Stream;

/// The column of `{"ground_truth": …}`, as in verl.
const REWARD_MODEL_KEY: &str = "reward_model";

/// One prompt, ready for the rollout engine and for the scorer of its response.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// At most `max_prompt_length` tokens, never empty.
    pub ids: Vec<u32>,
    /// The conversation; a plain text prompt appears as one user message.
    pub messages: Value,
    /// What `ids` were made from, before truncation.
    pub text: String,
    pub data_source: String,
    pub ground_truth: Value,
    /// The row's extra_info, or `{}`.
    pub extra_info: Value,
    /// The row's position in the concatenated files, from 0, whatever was filtered out.
    pub index: usize,
}

/// What to do with more tokens than fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    Error,
    /// Drop tokens at the left: the end remains.
    Left,
    /// Drop tokens at the right: the beginning remains.
    Right,
    /// Keep the first `max / 2` tokens and fill up from the end.
    Middle,
}

impl Truncation {
    /// The tokens that remain, in order; `None` where there are too many and the policy is an error.
    pub fn apply<T: Copy>(self, items: &[T], max: usize) -> Option<Vec<T>> {
        if items.len() <= max {
            return Some(items.to_vec());
        }
        let cut = items.len() - max;
        match self {
            Self::Error => None,
            Self::Left => Some(items[cut..].to_vec()),
            Self::Right => Some(items[..max].to_vec()),
            Self::Middle => Some([&items[..max / 2], &items[max / 2 + cut..]].concat()),
        }
    }
}

/// A prompt as the model takes it, not yet truncated.
#[derive(Clone, Debug)]
pub struct PromptText {
    /// Never empty.
    pub ids: Vec<u32>,
    /// The conversation; a plain text prompt appears as one user message.
    pub messages: Value,
    pub text: String,
}

impl PromptText {
    /// From column `key` of a row: a list of messages, through the chat template, or text, used as it is.
    pub fn of(row: &Row, key: &str, tokenizer: &Tokenizer, chat_kwargs: &Map<String, Value>) -> Result<Self> {
        let (messages, text) = match row.column(key)? {
            Value::String(text) => (json!([{"role": "user", "content": text}]), text.clone()),
            messages @ Value::Array(_) => (messages.clone(), tokenizer.apply_chat_template(messages, true, chat_kwargs)?),
            _ => bail!("column \"{key}\" must be a list of messages or text"),
        };
        let ids = tokenizer.encode(&text)?;
        if ids.is_empty() {
            bail!("the prompt is empty");
        }
        Ok(Self { ids, messages, text })
    }
}

/// How rows become prompts: the `data` section of the configuration.
#[derive(Clone, Debug)]
pub struct PromptOptions {
    /// Column of the conversation (a list of messages, through the chat template) or of plain text (used as it is).
    pub prompt_key: String,
    /// Column that names the data source, which chooses the scorer.
    pub reward_fn_key: String,
    pub max_prompt_length: usize,
    pub truncation: Truncation,
    /// Leave out prompts longer than `max_prompt_length` instead of truncating them.
    pub filter_overlong_prompts: bool,
    /// Whether a row may lack a ground truth, which is then null: where nothing is compared with it.
    pub without_ground_truth: bool,
    /// Further variables of the chat template.
    pub chat_kwargs: Map<String, Value>,
}

/// Reads `files` in order. Errors name the file and row; no prompt left is an error.
pub fn load_prompts(files: &[PathBuf], tokenizer: &Tokenizer, options: &PromptOptions) -> Result<Vec<Prompt>> {
    let always = [options.prompt_key.as_str(), options.reward_fn_key.as_str(), REWARD_MODEL_KEY];
    let required = if options.without_ground_truth { &always[..2] } else { &always };
    let rows = read_rows(files, required, &[REWARD_MODEL_KEY, "extra_info"])?;
    let total = rows.len();
    let read = |(index, row): (usize, &Row)| read_prompt(row, index, tokenizer, options).with_context(|| row.place());
    // Gathered before the first error is looked for, so that the same file always gives the same error.
    let prompts: Vec<Result<Prompt>> = rows.par_iter().enumerate().map(read).collect();
    let mut prompts = prompts.into_iter().collect::<Result<Vec<_>>>()?;

    let max = options.max_prompt_length;
    if options.filter_overlong_prompts {
        prompts.retain(|prompt| prompt.ids.len() <= max);
        let dropped = total - prompts.len();
        if dropped > 0 {
            tracing::info!("left out {dropped} of {total} prompts: they are longer than {max} tokens");
        }
    }
    if prompts.is_empty() {
        bail!("no prompts: {} rows in {}{}", total, list(files), if total > 0 { ", all of them too long" } else { "" });
    }
    let overlong = prompts.iter().filter(|prompt| prompt.ids.len() > max).count();
    for prompt in &mut prompts {
        prompt.ids = options.truncation.apply(&prompt.ids, max).ok_or_else(|| {
            anyhow!(
                "{}: the prompt has {} tokens, more than data.max_prompt_length={max} ({overlong} of {total} prompts have); \
                 raise data.max_prompt_length, or leave such prompts out with data.filter_overlong_prompts=true, \
                 or shorten them with data.truncation=left, right or middle",
                rows[prompt.index].place(),
                prompt.ids.len()
            )
        })?;
    }
    Ok(prompts)
}

/// At most `max` of the samples, in their order: a seeded random choice if `shuffle`, else the first ones. `None`: all.
pub fn take_samples<T: Clone>(mut samples: Vec<T>, max: Option<usize>, shuffle: bool, seed: u64) -> Vec<T> {
    let Some(max) = max.filter(|max| *max < samples.len()) else { return samples };
    if !shuffle {
        samples.truncate(max);
        return samples;
    }
    let mut chosen: Vec<usize> = (0..samples.len()).collect();
    Stream::new(seed, "take-samples", &[]).shuffle(&mut chosen);
    chosen.truncate(max);
    chosen.sort_unstable();
    chosen.into_iter().map(|i| samples[i].clone()).collect()
}

fn read_prompt(row: &Row, index: usize, tokenizer: &Tokenizer, options: &PromptOptions) -> Result<Prompt> {
    let PromptText { ids, messages, text } = PromptText::of(row, &options.prompt_key, tokenizer, &options.chat_kwargs)?;
    let data_source = row.column(&options.reward_fn_key)?.as_str();
    let data_source = data_source.with_context(|| format!("column \"{}\" must be text", options.reward_fn_key))?;
    let ground_truth = match options.without_ground_truth {
        true => row.values.get(REWARD_MODEL_KEY).and_then(|column| column.get("ground_truth")).or(Some(&Value::Null)),
        false => row.column(REWARD_MODEL_KEY)?.get("ground_truth"),
    };
    let extra_info = row.values.get("extra_info").filter(|extra| !extra.is_null());
    Ok(Prompt {
        ids,
        messages,
        text,
        data_source: data_source.to_owned(),
        ground_truth: ground_truth
            .context("reward_model has no ground_truth (null is one: what compares with it abstains)")?
            .clone(),
        extra_info: extra_info.cloned().unwrap_or_else(|| json!({})),
        index,
    })
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}
