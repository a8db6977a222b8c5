//! Reading of rows in any layout that training reads: verl's, TRL's, OpenRLHF's, with or without responses.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::row::KnownRow;
use super::texts::truth_texts;
use burnish_config::schema::EvalDataConfig;
use burnish_data::rows::{EVERY_COLUMN, FileRows, Row};
use burnish_data::{GroundTruthKey, RowNeeds, Tokenizer, data_source};

/// Rows that are examined, spread over the file.
pub(super) const EXAMINED: usize = 16;
/// Columns that may hold the ground truth if no setting names one.
const TRUTHS: &[&str] =
    &["ground_truth", "label", "answer", "solution", "target", "final_answer", "gold", "expected_answer", "reference"];
/// Columns that may hold the prompt if `data.prompt_key` does not exist.
const PROMPTS: &[&str] = &["prompt", "messages", "input", "question", "problem", "query", "instruction"];
/// Columns that tell which responses are right.
pub(super) const MARKS: &[&str] = &["right", "correct", "is_right", "is_correct"];

/// Files of rows.
pub(super) struct Files {
    pub(super) paths: Vec<PathBuf>,
    /// Column of the responses.
    pub(super) responses: String,
    /// Number of rows in the files from which these were chosen.
    pub(super) all: Option<usize>,
}

/// Returns rows spread over the files, and the number of rows in the files.
pub(super) fn spread(paths: &[PathBuf]) -> Result<(Vec<Row>, usize)> {
    let mut rows = FileRows::read(paths, &[], EVERY_COLUMN).context("data.path")?;
    ensure!(!rows.is_empty(), "data.path: no rows to score");
    rows.fill_columns()?;
    let (all, count) = (rows.len(), rows.len().min(EXAMINED));
    Ok((rows.only((0..count).map(|i| i * all / count).collect()).each(|_, row| Ok(row))?, all))
}

/// Returns rows spread over the files as the probes see them, and the number of rows in the files.
///
/// # Errors
/// If the files cannot be read, or lack a column that a function needs or a setting names.
pub(super) fn read(
    files: &Files,
    data: &EvalDataConfig,
    needs: RowNeeds,
    tokenizer: Option<&Tokenizer>,
) -> Result<(Vec<KnownRow>, usize)> {
    let (rows, all) = spread(&files.paths)?;
    let named: BTreeSet<&str> = rows.iter().flat_map(|row| row.values.keys().map(String::as_str)).collect();
    let truth = match (data.label_key.as_deref(), named.contains(data.reward_model_key.as_str())) {
        (None, false) => TRUTHS.iter().find(|name| named.contains(*name)).map(|name| GroundTruthKey::Column((*name).to_string())),
        _ => None,
    };
    let truth = truth.unwrap_or_else(|| {
        GroundTruthKey::new(data.label_key.as_deref(), GroundTruthKey::Field(data.reward_model_key.clone()))
            .or_solution(needs.solution)
    });
    let read = |row: &Row| known(row, (data, &files.responses), needs, &truth, tokenizer).with_context(|| row.place());
    Ok((rows.iter().map(read).collect::<Result<_>>()?, files.all.unwrap_or(all)))
}

fn known(
    row: &Row,
    (data, response_key): (&EvalDataConfig, &str),
    needs: RowNeeds,
    truth: &GroundTruthKey,
    tokenizer: Option<&Tokenizer>,
) -> Result<KnownRow> {
    let source = data.data_source_key.as_deref().map(|key| data_source(row, key, needs.data_source)).transpose()?;
    let ground_truth = truth.value_in(row, needs.ground_truth)?.clone();
    let prompt = [data.prompt_key.as_str()].iter().chain(PROMPTS).find_map(|name| row.values.get(*name));
    let prompt = match prompt.unwrap_or(&Value::Null) {
        Value::String(text) if data.apply_chat_template => json!([{"role": "user", "content": text}]),
        prompt => prompt.clone(),
    };
    let question = match &prompt {
        Value::String(text) => text.clone(),
        Value::Array(messages) => messages.last().map(|last| content(&last["content"])).unwrap_or_default(),
        _ => String::new(),
    };
    let prompt_text = match (&prompt, tokenizer) {
        (Value::Array(_), Some(tokenizer)) => tokenizer.apply_chat_template(&prompt, true, &Map::new())?,
        _ => question.clone(),
    };
    let (responses, truths) = (responses(row, response_key)?, truths(row, &ground_truth));
    let extra_info = row.values.get("extra_info").filter(|extra| !extra.is_null()).cloned().unwrap_or_else(|| json!({}));
    Ok(KnownRow {
        place: row.place(),
        data_source: source.unwrap_or_default().to_owned(),
        ground_truth,
        extra_info,
        prompt,
        prompt_text,
        question,
        columns: row.values.clone(),
        truths,
        responses,
    })
}

/// Returns the text of a message, whose content may be a list of parts.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Returns the texts of the ground truth; if it has none, those of another column that may hold it.
fn truths(row: &Row, ground_truth: &Value) -> Vec<String> {
    let mut texts = truth_texts(ground_truth);
    let others = TRUTHS.iter().filter_map(|name| row.values.get(*name)).flat_map(truth_texts);
    others.for_each(|text| {
        if !texts.contains(&text) && texts.len() < 3 {
            texts.push(text)
        }
    });
    texts
}

/// Returns the responses of a row, with the marks of a list of the same length.
fn responses(row: &Row, key: &str) -> Result<Vec<(String, Option<bool>)>> {
    let texts = match row.values.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(texts)) => texts.clone(),
        Some(text @ Value::String(_)) => vec![text.clone()],
        Some(other) => bail!("column \"{key}\" must be a text or a list of texts, not {other}"),
    };
    let marks = MARKS.iter().find_map(|name| row.values.get(*name));
    let mark = |i: usize| match marks? {
        Value::Array(marks) if marks.len() == texts.len() => marks[i].as_bool(),
        mark if texts.len() == 1 => mark.as_bool(),
        _ => None,
    };
    let texts = texts.iter().enumerate().filter_map(|(i, text)| Some((text.as_str()?.to_owned(), mark(i))));
    Ok(texts.collect())
}
