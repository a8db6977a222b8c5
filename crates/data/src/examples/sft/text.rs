//! Plain texts.

use anyhow::{Context, Result};

use super::tokens::SftTokens;
use crate::examples::document::Document;
use crate::examples::prompt_boundary::TextForm;
use crate::files::rows::Row;
use crate::template::content;
use crate::tokens::tokenizer::Tokenizer;

/// Note for a text with special tokens of a chat template.
const RENDERED: &str = "have special tokens in their text, as written by a chat template: put conversations in data.messages_key, as lists \
                        of messages";

/// Reads a column of text. The whole text and the end-of-text token are learnt.
pub(super) fn read(row: &Row, key: &str, tokenizer: &Tokenizer) -> Result<SftTokens> {
    let text = row
        .column(key)?
        .as_str()
        .with_context(|| format!("column \"{key}\" must be text; a list of messages is read with data.messages_key={key}"))?;
    content::refuse_written_messages(text).with_context(|| format!("column \"{key}\""))?;
    let ids = TextForm::Plain.encode_full(tokenizer, text)?;
    let notes = rendered(&ids, tokenizer);
    Ok(SftTokens { document: Document { weights: vec![1.0; ids.len()], ids }, notes })
}

/// Returns the note for a text with special tokens other than at its ends.
pub(super) fn rendered(ids: &[u32], tokenizer: &Tokenizer) -> Vec<&'static str> {
    let inner = ids.get(1..ids.len().saturating_sub(1)).unwrap_or_default();
    inner.iter().any(|id| tokenizer.is_special(*id)).then_some(RENDERED).into_iter().collect()
}
