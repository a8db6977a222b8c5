//! Rows in tokens: their beginning, their equality, and their text with the trained parts.

use std::collections::HashSet;

use anyhow::Result;

use burnish_data::Tokenizer;
use burnish_doctor::{BeginTokens, SharedRows, ShownRow};

/// Number of rows that a finding names.
const NAMED: usize = 3;
/// Most tokens of a row that are shown at each end.
const SHOWN: usize = 200;

/// Counts the rows that begin with a special token twice, or without the tokens that the tokenizer writes before a text.
pub(crate) fn begin_tokens<'a>(tokenizer: &Tokenizer, rows: impl Iterator<Item = &'a [u32]>) -> BeginTokens {
    let first = tokenizer.encode_begun("").unwrap_or_default();
    let mut begins = BeginTokens::default();
    let mut token = first.first().copied();
    for ids in rows {
        begins.all += 1;
        let twice = ids.len() > 1 && ids[0] == ids[1] && tokenizer.is_special(ids[0]);
        begins.doubled += usize::from(twice);
        token = token.or(twice.then(|| ids[0]));
        begins.missing += usize::from(!ids.starts_with(&first));
    }
    begins.token = token.and_then(|id| tokenizer.decode(&[id], false).ok());
    begins
}

/// Counts the validation rows that are among the training rows. `place` describes a validation row.
pub(crate) fn shared_rows<K: std::hash::Hash + Eq>(
    train: impl Iterator<Item = K>,
    val: impl Iterator<Item = K>,
    place: impl Fn(usize) -> String,
) -> SharedRows {
    let train: HashSet<K> = train.collect();
    let mut shared = SharedRows::default();
    for (i, row) in val.enumerate() {
        shared.all += 1;
        if train.contains(&row) {
            shared.count += 1;
            if shared.first.len() < NAMED {
                shared.first.push(place(i));
            }
        }
    }
    shared
}

/// Returns a row to show. `trained`: true for each token that is trained.
///
/// # Errors
/// If ids cannot be decoded.
pub(crate) fn shown_row(tokenizer: &Tokenizer, title: String, ids: &[u32], trained: &[bool]) -> Result<ShownRow> {
    let pieces = tokenizer.pieces(ids)?;
    let mut parts: Vec<(String, bool)> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let is_trained = trained.get(i).copied().unwrap_or_default();
        let piece = match i {
            SHOWN if pieces.len() > 2 * SHOWN => " … ",
            i if i > SHOWN && i + SHOWN < pieces.len() => continue,
            _ => piece.as_str(),
        };
        match parts.last_mut() {
            Some((text, last)) if *last == is_trained => text.push_str(piece),
            _ => parts.push((piece.to_owned(), is_trained)),
        }
    }
    let count = trained.iter().filter(|trained| **trained).count();
    Ok(ShownRow { title, parts, tokens: ids.len(), trained: count })
}
