//! Scored responses. A row of `trainer eval` has all responses to a prompt with scores; a row of OpenRLHF has one. A multi-turn
//! response is read from the row's messages, if present.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use indexmap::IndexMap;
use serde_json::Value;

use crate::files::conversations::{MESSAGES, OF_LINE, WrittenConversation};
use crate::files::rows::{FileRows, Row};

/// A response to a prompt, with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredResponse {
    /// Text, or a list of messages.
    pub prompt: Arc<Value>,
    pub response: String,
    pub score: f64,
    /// The conversation, for a multi-turn response.
    pub conversation: Option<ScoredConversation>,
}

/// A multi-turn conversation with tools, users or environments.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredConversation {
    /// Messages of the prompt.
    pub prompt: Vec<Value>,
    /// Messages from the model's first turn to its last.
    pub completion: Vec<Value>,
    /// Schemas of the tools in the prompt.
    pub tools: Vec<Value>,
}

/// All responses of some files, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoredResponses {
    pub responses: Vec<ScoredResponse>,
    /// Number of skipped responses without a score.
    pub unscored: usize,
    /// Number of skipped conversations without known messages or without a turn of the model.
    pub unknown: usize,
}

/// Names of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectColumns {
    pub prompt: String,
    /// Text, or a list of texts.
    pub response: String,
    /// A number, or a list with one for each response.
    pub score: String,
}

impl SelectColumns {
    /// Columns of `trainer eval`, and of OpenRLHF's `batch_inference`.
    const KNOWN: [[&str; 3]; 2] = [["prompt", "responses", "scores"], ["input", "output", "reward"]];

    /// Returns the given columns, and for the others the columns of the first known layout that the files have completely.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn choose(files: &[PathBuf], given: [Option<&str>; 3]) -> Result<Self> {
        let with = |known: [&'static str; 3]| [0, 1, 2].map(|i| given[i].map_or_else(|| known[i].to_owned(), str::to_owned));
        let rows = FileRows::read(files, &[], &Self::KNOWN.concat())?;
        let is_there =
            |names: &[String; 3]| names.iter().zip(given).all(|(name, given)| given.is_some() || rows.has_column(name));
        let [prompt, response, score] = Self::KNOWN.map(with).into_iter().find(is_there).unwrap_or_else(|| with(Self::KNOWN[0]));
        Ok(Self { prompt, response, score })
    }
}

impl ScoredResponses {
    /// Reads the responses of the files.
    ///
    /// # Errors
    /// If a file lacks a column, or a row does not have a prompt, responses and as many scores.
    pub fn read(files: &[PathBuf], keys: &SelectColumns) -> Result<Self> {
        let rows = FileRows::read(files, &[&keys.prompt, &keys.response, &keys.score], &OF_LINE).map_err(|error| {
            anyhow!(
                "{error:#} Write responses with scores by `trainer eval data.output_path=FILE.parquet`, or name other columns with \
                 --prompt-key, --response-key and --score-key"
            )
        })?;
        let mut all = Self::default();
        for index in 0..rows.len() {
            let row = rows.row(index)?;
            all.add(&row, keys).with_context(|| rows.place(index))?;
        }
        Ok(all)
    }

    fn add(&mut self, row: &Row, keys: &SelectColumns) -> Result<()> {
        let prompt = row.column(&keys.prompt)?;
        ensure!(
            prompt.is_string() || prompt.is_array(),
            "column \"{}\" must be text or a list of messages, not {prompt}",
            keys.prompt
        );
        let (responses, scores) = (listed(row.column(&keys.response)?), listed(row.column(&keys.score)?));
        ensure!(
            responses.len() == scores.len(),
            "\"{}\" has {} responses, but \"{}\" has {} scores",
            keys.response,
            responses.len(),
            keys.score,
            scores.len()
        );
        let conversations = conversations(row, responses.len())?;
        let prompt = Arc::new(prompt.clone());
        for (i, (response, score)) in responses.iter().zip(scores).enumerate() {
            let text = response.as_str().with_context(|| format!("response {i} must be text, not {response}"))?;
            let score = match score {
                Value::Null => {
                    self.unscored += 1;
                    continue;
                }
                Value::Number(score) => score.as_f64().context("a score is out of range")?,
                Value::Bool(right) => f64::from(u8::from(*right)),
                other => bail!("score {i} must be a number, not {other}"),
            };
            let conversation = match conversations.get(i).map(|written| for_training(written, &prompt)) {
                None => None,
                Some(Some(conversation)) => Some(conversation),
                Some(None) => {
                    self.unknown += 1;
                    continue;
                }
            };
            self.responses.push(ScoredResponse { prompt: prompt.clone(), response: text.to_owned(), score, conversation });
        }
        Ok(())
    }

    /// Groups the responses by prompt, in the order of first appearance. A prompt may have several rows.
    pub fn by_prompt(&self) -> Vec<Vec<&ScoredResponse>> {
        let mut groups: IndexMap<String, Vec<&ScoredResponse>> = IndexMap::new();
        for response in &self.responses {
            groups.entry(response.prompt.to_string()).or_default().push(response);
        }
        groups.into_values().collect()
    }
}

/// Returns the conversations of a row's responses: from text of `trainer generate`, or from a line of a run's rollouts. Empty for
/// single-turn responses.
fn conversations(row: &Row, responses: usize) -> Result<Vec<WrittenConversation>> {
    let Some(cell) = row.values.get(MESSAGES) else { return Ok(Vec::new()) };
    let conversations = match (WrittenConversation::listed(cell), cell) {
        (Some(conversations), _) => conversations,
        (None, Value::Array(_)) if row.values.get("end").is_some_and(Value::is_string) => {
            vec![WrittenConversation::from_line(&row.values).context("column \"messages\"")?]
        }
        _ => return Ok(Vec::new()),
    };
    let count = conversations.len();
    ensure!(count == responses, "\"{MESSAGES}\" has {count} conversations, but there are {responses} responses");
    Ok(conversations)
}

/// Returns the messages of a conversation for training; `None` if they do not represent its tokens. This includes text prompts,
/// which had no template but would get one as messages.
fn for_training(written: &WrittenConversation, prompt: &Value) -> Option<ScoredConversation> {
    let (prompt_messages, completion) = written.parts().ok()?;
    let is_text = prompt.is_string() && prompt_messages.iter().any(|message| message["content"] == *prompt);
    let conversation =
        ScoredConversation { prompt: prompt_messages.to_vec(), completion: completion.to_vec(), tools: written.tools.clone() };
    Some(conversation).filter(|conversation| !conversation.completion.is_empty() && !is_text)
}

fn listed(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}
