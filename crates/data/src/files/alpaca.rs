//! Rows in Alpaca's form, with a question in several columns: `instruction`, `input` and `history`.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::rows::Row;

/// Column of the question.
const INSTRUCTION: &str = "instruction";
/// Column of the question's subject, which follows the question on a separate line, as in LLaMA-Factory.
const INPUT: &str = "input";
/// Column of earlier questions and answers, a list of pairs.
const HISTORY: &str = "history";

/// Note for a row with a history.
pub(crate) const HISTORY_NOT_LEARNT: &str = "have a column \"history\", whose answers are context and are not learnt";

/// Returns the additional columns of a question in the column `prompt_key`.
pub fn columns(prompt_key: &str) -> &'static [&'static str] {
    if prompt_key == INSTRUCTION { &[INPUT] } else { &[] }
}

/// Like [`columns`], with the column of earlier turns.
pub(crate) fn columns_with_history(prompt_key: &str) -> &'static [&'static str] {
    if prompt_key == INSTRUCTION { &[INPUT, HISTORY] } else { &[] }
}

/// Returns the question of a row whose prompt is this text.
pub(crate) fn question(row: &Row, prompt_key: &str, text: &str) -> String {
    let input = row.values.get(INPUT).and_then(Value::as_str).filter(|input| !input.trim().is_empty());
    match input.filter(|_| prompt_key == INSTRUCTION) {
        Some(input) if text.is_empty() => input.to_owned(),
        Some(input) => format!("{text}\n{input}"),
        None => text.to_owned(),
    }
}

/// Returns the messages before the question.
///
/// # Errors
/// A history that is not a list of pairs of texts.
pub(crate) fn history(row: &Row, prompt_key: &str) -> Result<Vec<Value>> {
    let history = row.values.get(HISTORY).filter(|history| prompt_key == INSTRUCTION && !history.is_null());
    let Some(history) = history else { return Ok(Vec::new()) };
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([Value::String(question), Value::String(answer)]) => {
            Some([json!({"role": "user", "content": question}), json!({"role": "assistant", "content": answer})])
        }
        _ => None,
    };
    let pairs = history.as_array().and_then(|pairs| pairs.iter().map(pair).collect::<Option<Vec<_>>>());
    let pairs = pairs.with_context(|| format!("column \"{HISTORY}\" must be a list of pairs [question, answer]"))?;
    Ok(pairs.into_iter().flatten().collect())
}
