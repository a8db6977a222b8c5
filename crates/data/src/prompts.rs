//! Prompts for reinforcement learning: renders, tokenizes, filters and truncates rows in verl's schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};

use crate::files::agent_rows::{AGENT_NAME, AgentRows};
use crate::files::alpaca;
use crate::files::ground_truth::{REWARD_MODEL_KEY, ground_truth};
use crate::files::media;
use crate::files::missing_columns::{GROUND_TRUTH, with_remedies};
use crate::files::row_selection::RowSelection;
use crate::files::rows::{EVERY_COLUMN, MEDIA_COLUMNS, Row, Rows};
use crate::files::unread_columns::name_unread;
use crate::template::content;
use crate::template::coverage::fit_to_template;
use crate::template::roles::from_sharegpt;
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// Default column of the data source.
const DATA_SOURCE: &str = "data_source";

/// Name of an empty data source in metrics, as in verl.
const UNKNOWN_SOURCE: &str = "unknown";

/// One prompt, ready for the rollout engine and the scorer.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// At most `max_prompt_length` tokens, never empty.
    pub ids: Vec<u32>,
    /// The conversation; a plain text prompt appears as one user message.
    pub messages: Value,
    /// True if the row holds a conversation, false if it holds plain text.
    pub conversational: bool,
    /// Text of `ids`; after truncation, the text of the remaining ids.
    pub text: String,
    /// Data source of the row; empty if it has none and needs none.
    pub data_source: String,
    pub ground_truth: Value,
    /// `extra_info` of the row, or `{}`.
    pub extra_info: Value,
    /// Agent loop of the conversation; empty in runs without agents.
    pub agent: String,
    /// All columns of the row, if needed ([`RowNeeds::columns`]).
    pub columns: Map<String, Value>,
    /// Position of the row in the concatenated files, from 0, including filtered rows.
    pub index: usize,
    /// File of the row and position in that file, for messages.
    pub place: (Arc<Path>, usize),
}

impl Prompt {
    /// Returns "FILE, row INDEX", for messages.
    pub fn place(&self) -> String {
        format!("{}, row {}", self.place.0.display(), self.place.1)
    }
}

/// The treatment of sequences with too many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    Error,
    /// Drops tokens at the beginning.
    Left,
    /// Drops tokens at the end.
    Right,
    /// Keeps the first `max / 2` tokens, and the rest from the end.
    Middle,
}

impl Truncation {
    /// Returns the remaining tokens; `None` if there are too many and the policy is [`Self::Error`].
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

/// A prompt as the model takes it, before truncation.
#[derive(Clone, Debug)]
pub struct PromptText {
    /// The token ids; never empty.
    pub ids: Vec<u32>,
    /// The conversation; a plain text prompt appears as one user message.
    pub messages: Value,
    pub text: String,
}

impl PromptText {
    /// Reads column `key` of a row. A list of messages goes through the chat template. Text is used unchanged, with the tokens
    /// that the tokenizer adds around a text.
    pub fn from_row(row: &Row, key: &str, tokenizer: &Tokenizer, chat_kwargs: &TemplateVariables) -> Result<Self> {
        media::refuse(row)?;
        let (messages, text, ids) = match row.column(key)? {
            Value::String(text) => {
                content::refuse_written_messages(text).with_context(|| format!("column \"{key}\""))?;
                let text = alpaca::question(row, key, text);
                let ids = tokenizer.encode_plain(&text)?;
                (json!([{"role": "user", "content": text}]), text, ids)
            }
            Value::Array(messages) => {
                let messages = messages.iter().map(from_sharegpt).collect();
                let messages =
                    fit_to_template(messages, true, tokenizer, chat_kwargs).with_context(|| format!("column \"{key}\""))?.into();
                let text = tokenizer.apply_chat_template(&messages, true, chat_kwargs)?;
                let ids = tokenizer.encode(&text)?;
                (messages, text, ids)
            }
            _ => bail!("column \"{key}\" must be a list of messages or text"),
        };
        if ids.is_empty() {
            bail!("the prompt is empty");
        }
        Ok(Self { ids, messages, text })
    }
}

/// Options for turning rows into prompts: the `data` section of the configuration.
#[derive(Clone, Debug)]
pub struct PromptOptions {
    /// Column of the conversation (a list of messages, for the chat template) or of plain text (used unchanged).
    pub prompt_key: String,
    /// Column of the data source, which selects the scorer.
    pub reward_fn_key: String,
    pub max_prompt_length: usize,
    pub truncation: Truncation,
    /// True to skip prompts longer than `max_prompt_length` instead of truncating them.
    pub filter_overlong_prompts: bool,
    pub needs: RowNeeds,
    /// Further variables of the chat template.
    pub chat_kwargs: TemplateVariables,
    pub agents: AgentRows,
    pub reading: RowSelection,
}

/// The parts of a row that the rewards read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowNeeds {
    /// True if a row without a data source is an error; otherwise it is empty.
    pub data_source: bool,
    /// True if a row without a ground truth is an error (null is a ground truth); otherwise it is null.
    pub ground_truth: bool,
    /// True to keep every column.
    pub columns: bool,
    /// True if the text of the prompt, with special tokens, is read.
    pub prompt_text: bool,
}

/// Reads `files` in order. Errors name the file and row. It is an error if no prompt remains.
pub fn load_prompts(files: &[PathBuf], tokenizer: &Tokenizer, options: &PromptOptions) -> Result<Vec<Prompt>> {
    let (needs, source) = (options.needs, options.reward_fn_key.as_str());
    let mut required = vec![options.prompt_key.as_str()];
    // A column that the user names must exist, even if only metrics read it.
    required.extend((needs.data_source || source != DATA_SOURCE).then_some(source));
    required.extend(needs.ground_truth.then_some(REWARD_MODEL_KEY));
    let some = [source, REWARD_MODEL_KEY, "extra_info", AGENT_NAME];
    let some = [&some, MEDIA_COLUMNS, alpaca::columns(&options.prompt_key)].concat();
    let settings =
        [("data.prompt_key", options.prompt_key.as_str()), ("data.reward_fn_key", source), (GROUND_TRUTH, REWARD_MODEL_KEY)];
    let rows = Rows::read(files, &required, if needs.columns { EVERY_COLUMN } else { &some });
    let mut rows = rows.map_err(|error| with_remedies(error, &settings))?;
    if needs.columns {
        rows.fill_columns()?;
    } else {
        name_unread(&rows, &[&required[..], &some].concat());
    }
    let rows = options.reading.apply(rows);
    let total = rows.chosen();
    let (of, with) = (options.clone(), tokenizer.clone());
    let (mut prompts, malformed) =
        rows.each_or(options.reading.on_malformed, move |index, row| read_prompt(&row, index, &with, &of))?;
    malformed.report("prompts", total)?;
    warn_of_ends(tokenizer, prompts.iter().filter(|prompt| !prompt.conversational).map(|prompt| prompt.ids.as_slice()));

    let max = options.max_prompt_length;
    if options.filter_overlong_prompts {
        let (read, first) = (prompts.len(), prompts.iter().find(|prompt| prompt.ids.len() > max).map(Prompt::place));
        prompts.retain(|prompt| prompt.ids.len() <= max);
        if let Some(first) = first {
            let dropped = read - prompts.len();
            tracing::info!("skipped {dropped} of {total} prompts: they are longer than {max} tokens; the first: {first}");
        }
    }
    if prompts.is_empty() {
        bail!("no prompts: {} rows in {}{}", total, list(files), if total > 0 { ", all of them too long" } else { "" });
    }
    let overlong = prompts.iter().filter(|prompt| prompt.ids.len() > max).count();
    let first = prompts.iter().find(|prompt| prompt.ids.len() > max).map(Prompt::place);
    for prompt in prompts.iter_mut().filter(|prompt| prompt.ids.len() > max) {
        prompt.ids = options.truncation.apply(&prompt.ids, max).ok_or_else(|| {
            anyhow!(
                "{}: the prompt has {} tokens, more than data.max_prompt_length={max} ({overlong} of {total} prompts have); \
                 raise data.max_prompt_length, or leave such prompts out with data.filter_overlong_prompts=true, \
                 or shorten them with data.truncation=left, right or middle",
                rows.place(prompt.index),
                prompt.ids.len()
            )
        })?;
        // Logs and reward functions get the text that the model reads.
        prompt.text = tokenizer.decode(&prompt.ids, false)?;
    }
    if let Some(first) = first {
        tracing::warn!(
            "{overlong} of {total} prompts have more than {max} tokens (data.max_prompt_length) and are cut by data.truncation; \
             the first: {first}"
        );
    }
    Ok(prompts)
}

/// Warns if plain text prompts (`plain`, as ids) have unexpected special tokens at their ends: the tokenizer adds them around
/// every text, and TRL and vLLM keep them too.
pub fn warn_of_ends<'a>(tokenizer: &Tokenizer, plain: impl Iterator<Item = &'a [u32]>) {
    let (mut total, mut ended, mut doubled) = (0, 0, 0);
    let first = tokenizer.encode_plain("").ok().and_then(|ids| ids.first().copied());
    for ids in plain {
        total += 1;
        ended += usize::from(ids.last().is_some_and(|id| tokenizer.eos_ids().contains(id)));
        doubled += usize::from(ids.len() > 1 && ids[0] == ids[1] && first == Some(ids[0]));
    }
    if ended > 0 {
        tracing::warn!(
            "{ended} of {total} text prompts end with an end-of-text token, from the text or from the tokenizer \
             (post_processor of tokenizer.json): responses begin after it"
        );
    }
    if doubled > 0 {
        tracing::warn!(
            "{doubled} of {total} text prompts begin with the same special token twice: the text has it, and the tokenizer \
             adds it before every text (post_processor of tokenizer.json)"
        );
    }
}

fn read_prompt(row: &Row, index: usize, tokenizer: &Tokenizer, options: &PromptOptions) -> Result<Prompt> {
    let needs = options.needs;
    let extra_info = row.values.get("extra_info").filter(|extra| !extra.is_null());
    let (agent, no_extra) = (options.agents.agent(row)?, json!({}));
    let tools = options.agents.tools(&agent, extra_info.unwrap_or(&no_extra))?;
    let conversational = row.column(&options.prompt_key)?.is_array();
    if tools.is_some() && !conversational {
        bail!(
            "column \"{}\" is text, but {agent} needs a list of messages, to which calls and results are added",
            options.prompt_key
        );
    }
    let with_tools = tools.map(|tools| {
        let mut variables = options.chat_kwargs.clone();
        variables.insert("tools".to_owned(), tools.into());
        variables
    });
    let variables = with_tools.as_ref().unwrap_or(&options.chat_kwargs);
    let PromptText { ids, messages, text } = PromptText::from_row(row, &options.prompt_key, tokenizer, variables)?;
    let data_source = match needs.data_source {
        true => row.column(&options.reward_fn_key)?,
        false => row.values.get(&options.reward_fn_key).unwrap_or(&Value::Null),
    };
    let unknown = data_source.is_null() && !needs.data_source;
    let data_source = if unknown { Some("") } else { data_source.as_str() };
    let data_source = data_source.with_context(|| format!("column \"{}\" must be text", options.reward_fn_key))?;
    let ground_truth = ground_truth(row, REWARD_MODEL_KEY, needs.ground_truth)?.clone();
    Ok(Prompt {
        ids,
        conversational,
        messages,
        text,
        data_source: data_source.to_owned(),
        ground_truth,
        extra_info: extra_info.cloned().unwrap_or(no_extra),
        agent,
        columns: if needs.columns { row.values.clone() } else { Map::new() },
        index,
        place: (row.file.clone(), row.index),
    })
}

/// Returns the name of a data source for metrics.
pub fn named_source(data_source: &str) -> &str {
    if data_source.is_empty() { UNKNOWN_SOURCE } else { data_source }
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}
