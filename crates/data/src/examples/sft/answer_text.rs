//! The answers of a document as text, to find the tokens of two tokenizers that write the same part of it.

use std::ops::Range;

use anyhow::Result;

use crate::examples::document::Document;
use crate::tokens::tokenizer::Tokenizer;

/// The trained tokens of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerTokens {
    /// The tokens of the text, as positions in the document.
    pub tokens: Range<usize>,
    /// For each of them the byte of the text at which it ends; `None` within a character.
    pub ends: Vec<Option<usize>>,
    /// The number of trained tokens after the text, such as the token that ends a turn.
    pub after: usize,
}

/// A run of trained tokens with its text, without special tokens.
pub(super) struct TrainedRun {
    first: usize,
    text: String,
    /// For each token where it begins and ends in `text`, and `None` as end within a character.
    bytes: Vec<(usize, Option<usize>)>,
}

impl TrainedRun {
    /// Returns the runs of trained tokens of a document.
    pub(super) fn all(document: &Document, tokenizer: &Tokenizer) -> Result<Vec<Self>> {
        let trained = |t: &usize| document.weights[*t] != 0.0;
        let tokens = document.ids.len();
        let firsts = (0..tokens).filter(|t| trained(t) && (*t == 0 || !trained(&(t - 1))));
        firsts
            .map(|first| {
                let end = (first..tokens).find(|t| !trained(t)).unwrap_or(tokens);
                Self::new(first, &document.ids[first..end], tokenizer)
            })
            .collect()
    }

    fn new(first: usize, ids: &[u32], tokenizer: &Tokenizer) -> Result<Self> {
        let (mut text, mut bytes) = (String::new(), Vec::with_capacity(ids.len()));
        for (&id, piece) in ids.iter().zip(tokenizer.pieces(ids)?) {
            let start = text.len();
            let is_special = tokenizer.is_special(id);
            if !is_special {
                text.push_str(&piece);
            }
            // The last token of a character has all of its text.
            bytes.push((start, (is_special || !piece.is_empty()).then_some(text.len())));
        }
        Ok(Self { first, text, bytes })
    }

    /// Returns the tokens that write the bytes `part` of the text. A token that reaches over an end of the part counts.
    fn within(&self, part: Range<usize>) -> AnswerTokens {
        let known = |i: &usize| self.bytes[*i..].iter().find_map(|(_, end)| *end).unwrap_or(self.text.len());
        let all = 0..self.bytes.len();
        let start = all.clone().find(|i| known(i) > part.start).unwrap_or(all.end);
        let end = (start..all.end).find(|&i| self.bytes[i].0 >= part.end).unwrap_or(all.end);
        let relative = |end: usize| end.min(part.end) - part.start;
        AnswerTokens {
            tokens: self.first + start..self.first + end,
            ends: self.bytes[start..end].iter().map(|(_, end)| end.map(relative)).collect(),
            after: all.end - end,
        }
    }
}

/// Returns the tokens of the text that two runs share: the whole of both but for spaces at the ends, or the end of one if it
/// begins with more, such as a thought. `None` if their texts differ.
pub(super) fn shared(own: &TrainedRun, other: &TrainedRun) -> Option<[AnswerTokens; 2]> {
    let (a, b) = (own.text.trim(), other.text.trim());
    let length = a.len().min(b.len());
    let same = if a.len() > b.len() { a.ends_with(b) } else { b.ends_with(a) };
    if length == 0 || !same {
        return None;
    }
    Some([own, other].map(|run| {
        let end = run.text.trim_end().len();
        run.within(end - length..end)
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// A character of two tokens has no end between them, and the token that ends the text is after it.
    #[test]
    fn bytes_of_a_character_have_no_end() {
        let folder = tempfile::tempdir().unwrap();
        let texts = ["<unk>", "<eos>", "a", "b", "<0xC3>", "<0xA9>"];
        let vocab: Map<_, _> = texts.iter().enumerate().map(|(id, text)| ((*text).to_owned(), json!(id))).collect();
        let end = json!({"id": 1, "content": "<eos>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
            "added_tokens": [end],
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
        });
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), json!({"eos_token": "<eos>"}).to_string()).unwrap();
        let tokenizer = Tokenizer::load(folder.path()).unwrap();
        let document = Document { ids: vec![3, 2, 4, 5, 3, 1], weights: vec![0.0, 1.0, 1.0, 1.0, 1.0, 1.0] };
        let runs = TrainedRun::all(&document, &tokenizer).unwrap();
        let [run] = &runs[..] else { panic!("one run") };
        assert_eq!(run.text, "aéb");
        let [own, other] = shared(run, run).unwrap();
        assert_eq!(own, AnswerTokens { tokens: 1..5, ends: vec![Some(1), None, Some(3), Some(4)], after: 1 });
        assert_eq!(own, other);
    }
}
