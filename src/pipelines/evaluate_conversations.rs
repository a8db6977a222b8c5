//! The conversations in a file of responses, as `trainer generate` writes them.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use burnish_agent::Told;
use burnish_data::MESSAGES;
use burnish_data::rows::{Row, Rows};
use burnish_reward::Conversation;

/// True if the files have a column of conversations.
pub fn has_conversations(files: &[PathBuf]) -> bool {
    Rows::read(files, &[MESSAGES], &[]).is_ok()
}

/// The conversations of a row with so many responses; none if it has none. A column of that name that is no list of texts, such
/// as a conversation for supervised fine-tuning, counts as none. `named`: reward functions are named.
///
/// # Errors
/// Texts that are no conversations, or more or fewer than responses.
pub fn conversations(row: &Row, responses: usize, named: bool) -> Result<Vec<Told>> {
    let texts: Option<Vec<&str>> =
        row.values.get(MESSAGES).and_then(Value::as_array).and_then(|list| list.iter().map(Value::as_str).collect());
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return Ok(Vec::new()) };
    let count = texts.len();
    ensure!(count == responses, "column \"{MESSAGES}\" has {count} conversations, and there are {responses} responses");
    let read = |(i, text): (usize, &str)| -> Result<Told> {
        let told: Told = serde_json::from_str(text).with_context(|| {
            format!(
                "column \"{MESSAGES}\": text {i} is no conversation as trainer generate writes it; leave the column out, or give it \
                 another name"
            )
        })?;
        Ok(if named { told.beside_functions() } else { told })
    };
    texts.into_iter().enumerate().map(read).collect()
}

/// True if reward functions are asked about none of these conversations, because each has a score or a failure of its own.
pub fn are_settled(conversations: &[Told]) -> bool {
    !conversations.is_empty() && conversations.iter().all(|told| told.verdict().is_some())
}
