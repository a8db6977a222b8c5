//! The conversations in a file of responses, as `trainer generate` writes them.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use burnish_agent::Transcript;
use burnish_data::MESSAGES;
use burnish_data::rows::{FileRows, Row};
use burnish_reward::Conversation;

/// Returns true if the files have a column of conversations.
pub(crate) fn has_conversations(files: &[PathBuf]) -> bool {
    FileRows::read(files, &[MESSAGES], &[]).is_ok()
}

/// Returns the conversations of a row with this number of responses; empty without such a column. A column of that name that is
/// not a list of texts, such as a conversation for supervised fine-tuning, is ignored. `named`: the settings name reward
/// functions.
///
/// # Errors
/// If a text is not a conversation, or the numbers of conversations and responses differ.
pub(super) fn conversations(row: &Row, responses: usize, named: bool) -> Result<Vec<Transcript>> {
    let texts: Option<Vec<&str>> =
        row.values.get(MESSAGES).and_then(Value::as_array).and_then(|list| list.iter().map(Value::as_str).collect());
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return Ok(Vec::new()) };
    let count = texts.len();
    ensure!(count == responses, "column \"{MESSAGES}\" has {count} conversations for {responses} responses");
    let read = |(i, text): (usize, &str)| -> Result<Transcript> {
        let conversation: Transcript = serde_json::from_str(text).with_context(|| {
            format!(
                "column \"{MESSAGES}\": text {i} is not a conversation in the format of trainer generate; leave the column out, or give it \
                 another name"
            )
        })?;
        Ok(if named { conversation.for_reward_functions() } else { conversation })
    };
    texts.into_iter().enumerate().map(read).collect()
}

/// Returns true if no reward function has to score these conversations, because each comes with a score or a failure.
pub(crate) fn are_settled(conversations: &[Transcript]) -> bool {
    !conversations.is_empty() && conversations.iter().all(|conversation| conversation.verdict().is_some())
}
