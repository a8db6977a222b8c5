//! Plain texts.

use anyhow::{Context, Result};

use super::tokens::SftTokens;
use crate::examples::document::Document;
use crate::examples::prompt_boundary::TextForm;
use crate::files::rows::Row;
use crate::template::content;
use crate::tokens::tokenizer::Tokenizer;

/// The note of a text in which a chat template's tokens stand.
const RENDERED: &str = "hold special tokens within their text, as a chat template writes them: conversations belong in \
                        data.messages_key, as lists of messages";

/// Reads a column of text, all of which is learnt, with its end.
pub(super) fn read(row: &Row, key: &str, tokenizer: &Tokenizer) -> Result<SftTokens> {
    let text = row
        .column(key)?
        .as_str()
        .with_context(|| format!("column \"{key}\" must be text; a list of messages is read with data.messages_key={key}"))?;
    content::refuse_written_messages(text).with_context(|| format!("column \"{key}\""))?;
    let ids = TextForm::Plain.encode_whole(tokenizer, text)?;
    let notes = rendered(&ids, tokenizer);
    Ok(SftTokens { document: Document { weights: vec![1.0; ids.len()], ids }, notes })
}

/// Returns the note of a text with special tokens other than those it begins and ends with.
pub(super) fn rendered(ids: &[u32], tokenizer: &Tokenizer) -> Vec<&'static str> {
    let inner = ids.get(1..ids.len().saturating_sub(1)).unwrap_or_default();
    inner.iter().any(|id| tokenizer.is_special(*id)).then_some(RENDERED).into_iter().collect()
}
