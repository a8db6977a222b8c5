//! Prompts for reinforcement learning: renders, tokenizes, filters and truncates rows in verl's schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};

use crate::examples::CHANGED_ROWS;
use crate::files::agent_rows::{AGENT_NAME, AgentRows};
use crate::files::alpaca;
use crate::files::ground_truth::GroundTruthKey;
use crate::files::missing_columns::with_remedies;
use crate::files::row_selection::{RowSelection, TooLongError};
use crate::files::rows::{EVERY_COLUMN, FileRows, MEDIA_COLUMNS, Row};
use crate::files::unread_columns::name_unread;
use crate::long_tools::LongTools;
use crate::prompt_text::{PromptForm, PromptText};
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;
use burnish_util::python_tagged::is_missing;

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
    /// Data source of the row; empty if the row has no data source and needs none.
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

/// Options for turning rows into prompts: the `data` section of the configuration.
#[derive(Clone, Debug)]
pub struct PromptOptions {
    pub form: PromptForm,
    /// Column of the data source, which selects the scorer; `None` if rows have none.
    pub reward_fn_key: Option<String>,
    pub ground_truth: GroundTruthKey,
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

/// Number of tokens above the limit that ends the reading at once.
const FAR_TOO_LONG: usize = 10_000;

impl PromptOptions {
    /// Refuses a prompt far above the limit before other rows are read. Large schemas of tools make every prompt so long, and take
    /// much time in each.
    fn refuse_far_too_long(&self, prompt: &Prompt) -> Result<()> {
        let (tokens, max) = (prompt.ids.len(), self.max_prompt_length);
        let is_refused = self.truncation == Truncation::Error && !self.filter_overlong_prompts;
        if !is_refused || tokens <= max.saturating_add(FAR_TOO_LONG) {
            return Ok(());
        }
        let tools = if prompt.agent.is_empty() { "" } else { ", with the schemas of its tools" };
        bail!(TooLongError(format!(
            "the prompt has {tokens} tokens{tools}, more than data.max_prompt_length={max}; raise data.max_prompt_length, offer fewer \
             tools, or leave such prompts out with data.filter_overlong_prompts=true"
        )));
    }
}

/// The parts of a row that the rewards read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNeeds {
    /// True if a row without a data source is an error; otherwise it is empty.
    pub data_source: bool,
    /// True if a row without a ground truth is an error (null is a ground truth); otherwise it is null.
    pub ground_truth: bool,
    /// True if the column `solution` is the ground truth of rows without the usual column, as for functions of TRL.
    pub solution: bool,
    /// True to keep every column.
    pub columns: bool,
    /// True if the text of the prompt, with special tokens, is read.
    pub prompt_text: bool,
}

/// Reads `files` in order. Errors name the file and row. It is an error if no prompt remains.
pub fn load_prompts(files: &[PathBuf], tokenizer: &Tokenizer, options: &PromptOptions) -> Result<Vec<Prompt>> {
    let (needs, prompt_key) = (options.needs, options.form.key.as_str());
    let truth = options.ground_truth.clone().or_solution(needs.solution);
    let source = options.reward_fn_key.as_deref();
    let mut required = vec![prompt_key];
    // A column that the user names must exist, even if only metrics read it.
    required.extend(source.filter(|source| needs.data_source || *source != DATA_SOURCE));
    required.extend(truth.required(needs.ground_truth));
    let some: Vec<&str> = source.into_iter().chain(truth.columns()).chain(["extra_info", AGENT_NAME]).collect();
    let some = [&some, MEDIA_COLUMNS, alpaca::columns(prompt_key)].concat();
    let mut settings = vec![("data.prompt_key", prompt_key), truth.setting()];
    settings.extend(source.map(|source| ("data.reward_fn_key", source)));
    let rows = FileRows::read(files, &required, if needs.columns { EVERY_COLUMN } else { &some });
    let mut rows = rows.map_err(|error| with_remedies(error, &settings))?;
    if needs.columns {
        rows.fill_columns()?;
    } else {
        name_unread(&rows, &[&required[..], &some].concat());
    }
    let rows = options.reading.apply(rows);
    let total = rows.chosen();
    let (of, with) = (PromptOptions { ground_truth: truth.clone(), ..options.clone() }, tokenizer.clone());
    let tools = options.agents.tools.values().filter(|_| options.filter_overlong_prompts);
    let long_tools = LongTools::find(tools, options.max_prompt_length, &options.chat_kwargs, tokenizer);
    let (mut prompts, malformed) = rows.each_or(options.reading.on_malformed, move |index, row| {
        let prompt = read_prompt(&row, index, &with, &of, &long_tools)?;
        of.refuse_far_too_long(&prompt)?;
        Ok(prompt)
    })?;
    malformed.report("prompts", total)?;
    warn_of_ends(tokenizer, prompts.iter().filter(|prompt| !prompt.conversational).map(|prompt| prompt.ids.as_slice()));

    let max = options.max_prompt_length;
    if options.filter_overlong_prompts {
        let (read, first) = (prompts.len(), prompts.iter().find(|prompt| prompt.ids.len() > max).map(Prompt::place));
        prompts.retain(|prompt| prompt.ids.len() <= max);
        if let Some(first) = first {
            let dropped = read - prompts.len();
            tell(LEFT_OUT, dropped, total, &first, true);
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
        tell(SHORTENED, overlong, total, &first, false);
        tracing::warn!(
            "{overlong} of {total} prompts have more than {max} tokens (data.max_prompt_length) and are cut by data.truncation; \
             the first: {first}"
        );
    }
    Ok(prompts)
}

/// Reasons of changed rows.
const LEFT_OUT: &str = "are left out: their prompt has more than data.max_prompt_length tokens";
const SHORTENED: &str = "are cut at data.max_prompt_length";

/// Tells listeners about rows that are changed.
fn tell(reason: &str, count: usize, all: usize, first: &str, left_out: bool) {
    tracing::debug!(target: CHANGED_ROWS, reason, count, all, first, left_out);
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

fn read_prompt(
    row: &Row,
    index: usize,
    tokenizer: &Tokenizer,
    options: &PromptOptions,
    long_tools: &LongTools,
) -> Result<Prompt> {
    let (needs, max) = (options.needs, options.max_prompt_length);
    let extra_info = row.values.get("extra_info").filter(|extra| !is_missing(extra));
    let (agent, no_extra) = (options.agents.agent(row)?, json!({}));
    let tools = options.agents.tools(&agent, extra_info.unwrap_or(&no_extra))?;
    let key = &options.form.key;
    let conversational = options.form.apply_chat_template || row.column(key)?.is_array();
    if tools.is_some() && !conversational {
        bail!(
            "column \"{key}\" is text, but {agent} needs a list of messages, to which calls and results are added; \
             data.apply_chat_template=true makes each text a user message"
        );
    }
    let is_too_long = tools.as_deref().is_some_and(|tools| long_tools.contains(tools));
    let with_tools = tools.map(|tools| {
        let mut variables = options.chat_kwargs.clone();
        variables.insert("tools".to_owned(), tools.into());
        variables
    });
    let variables = with_tools.as_ref().unwrap_or(&options.chat_kwargs);
    // A prompt that is left out needs no more than its length.
    let long = || PromptText { ids: vec![0; max + 1], messages: Value::Null, text: String::new() };
    let read = || PromptText::from_row(row, &options.form, tokenizer, variables);
    let PromptText { ids, messages, text } = if is_too_long { long() } else { read()? };
    let data_source = options.reward_fn_key.as_deref().map(|key| data_source(row, key, needs.data_source)).transpose()?;
    let ground_truth = options.ground_truth.value_in(row, needs.ground_truth)?.clone();
    Ok(Prompt {
        ids,
        conversational,
        messages,
        text,
        data_source: data_source.unwrap_or_default().to_owned(),
        ground_truth,
        extra_info: extra_info.cloned().unwrap_or(no_extra),
        agent,
        columns: if needs.columns { row.values.clone() } else { Map::new() },
        index,
        place: (row.file.clone(), row.index),
    })
}

/// Returns the data source in a column; empty if it is missing or null and not `needed`.
///
/// # Errors
/// If it is needed and missing, or is not text.
pub fn data_source<'a>(row: &'a Row, key: &str, needed: bool) -> Result<&'a str> {
    let value = if needed { Some(row.column(key)?) } else { row.values.get(key).filter(|value| !is_missing(value)) };
    let text = |value: &'a Value| value.as_str().with_context(|| format!("column \"{key}\" must be text, not {value}"));
    value.map_or(Ok(""), text)
}

/// Returns the name of a data source for metrics.
pub fn named_source(data_source: &str) -> &str {
    if data_source.is_empty() { UNKNOWN_SOURCE } else { data_source }
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}
