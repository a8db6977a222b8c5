//! Encodes a text so that special tokens in messages of users or tools become ordinary text, while special tokens of the chat
//! template stay special.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

use anyhow::{Result, anyhow, ensure};
use tokenizers::{AddedToken, AddedVocabulary};

use super::foreign_tokenizer::ForeignTokenizer;
use super::tokenizer::Tokenizer;

/// A token before a part of a text, so the part is not encoded as the beginning of a text, where word tokenizers add a space.
/// Unicode guarantees that the character is never assigned.
const BEFORE: &str = "\u{fdd2}";

/// Encodes text with literal parts, in which special tokens are ordinary text.
pub struct Literal {
    tokenizer: Tokenizer,
    /// Texts of the special tokens, longest first.
    texts: Vec<String>,
    ids: BTreeSet<u32>,
    /// The tokenizer without special tokens, built on demand since it has the size of a vocabulary and few conversations need it.
    bare: OnceLock<Result<Bare, String>>,
}

/// A tokenizer without special tokens.
struct Bare {
    inner: ForeignTokenizer,
    before: u32,
    /// Its ids of other added tokens, and their original ids.
    ids: HashMap<u32, u32>,
}

impl Literal {
    /// Creates an encoder. Special tokens here are the added tokens that are special or that the chat template writes
    /// (`<tool_call>` is not special in Qwen's tokenizers), except runs of spaces.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        let mut texts = Vec::new();
        let mut ids = BTreeSet::new();
        for (id, token) in tokenizer.inner().vocabulary().get_added_tokens_decoder() {
            let is_space = token.content.chars().all(|c| c.is_whitespace() || c == '▁');
            if !is_space && (token.special || tokenizer.template_has(&token.content)) {
                texts.push(token.content);
                ids.insert(id);
            }
        }
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Self { tokenizer: tokenizer.clone(), texts, ids, bare: OnceLock::new() }
    }

    /// Returns the texts of the special tokens, longest first.
    pub fn control_texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the ids of [`Tokenizer::encode`], but encodes the byte ranges `literal` (ascending, disjoint) without special
    /// tokens.
    ///
    /// # Errors
    /// If the tokenizer has no other tokens for the text of a special token.
    pub fn encode(&self, text: &str, literal: &[Range<usize>]) -> Result<Vec<u32>> {
        // Letters replace the literal parts to find the special tokens outside of them.
        let mut filled = String::with_capacity(text.len());
        let mut end = 0;
        for part in literal {
            filled.push_str(&text[end..part.start]);
            filled.extend(std::iter::repeat_n('x', part.len()));
            end = part.end;
        }
        filled.push_str(&text[end..]);
        let (ids, bytes) = self.tokenizer.encode_with_bytes(&filled)?;
        let mut out = Vec::with_capacity(ids.len());
        let (mut start, mut first, mut next) = (0, 0, 0);
        for (i, id) in ids.iter().enumerate().chain([(ids.len(), &u32::MAX)]) {
            let is_end = i == ids.len();
            if !is_end && !self.ids.contains(id) {
                continue;
            }
            let until = if is_end { text.len() } else { bytes[i].start.max(start) };
            let parts = literal[next..].iter().take_while(|part| part.start < until).count();
            match &literal[next..next + parts] {
                [] => out.extend(&ids[first..i]),
                parts => out.extend(self.plain(text, start..until, parts)?),
            }
            next += parts;
            if !is_end {
                out.push(*id);
                (start, first) = (bytes[i].end.max(until), i + 1);
            }
        }
        Ok(out)
    }

    /// Returns the ids of a part of a text whose special tokens are all in `literal` and become text.
    fn plain(&self, text: &str, part: Range<usize>, literal: &[Range<usize>]) -> Result<Vec<u32>> {
        let bare = self.bare.get_or_init(|| self.bare().map_err(|error| format!("{error:#}")));
        let bare = bare.as_ref().map_err(|error| anyhow!("{error}"))?;
        let ids = bare.encode(&text[part.clone()], part.start == 0)?;
        if ids.iter().all(|id| !self.ids.contains(id)) {
            return Ok(ids);
        }
        // Some vocabularies have the text of a special token as a word. Such text is encoded character by character.
        let mut cuts = vec![part.start];
        for range in literal {
            let inside = text[range.clone()].char_indices().map(|(at, _)| range.start + at);
            cuts.extend(inside.chain([range.end]));
        }
        cuts.push(part.end);
        cuts.dedup();
        let mut ids = Vec::new();
        for cut in cuts.windows(2) {
            ids.extend(bare.encode(&text[cut[0]..cut[1]], cut[0] == 0)?);
        }
        let control = ids.iter().find(|id| self.ids.contains(id));
        ensure!(control.is_none(), "the tokenizer has no other tokens for the text of one of its special tokens");
        Ok(ids)
    }

    fn bare(&self) -> Result<Bare> {
        let whole = self.tokenizer.inner().vocabulary();
        let mut kept: Vec<(u32, AddedToken)> = whole.get_added_tokens_decoder().into_iter().collect();
        kept.retain(|(id, _)| !self.ids.contains(id));
        kept.sort_by_key(|(id, _)| *id);
        let mut vocabulary = AddedVocabulary::new();
        let before = AddedToken::from(BEFORE, true).normalized(false);
        let tokens = [before].into_iter().chain(kept.iter().map(|(_, token)| token.clone()));
        vocabulary.add_tokens(tokens, whole.get_model(), whole.get_normalizer()).map_err(|error| anyhow!("{error}"))?;
        let mut inner = whole.clone();
        inner.with_added_vocabulary(vocabulary);
        let before = inner.token_to_id(BEFORE).ok_or_else(|| anyhow!("the tokenizer accepts no further token"))?;
        let ids = kept.iter().filter_map(|(id, token)| Some((inner.token_to_id(&token.content)?, *id))).collect();
        Ok(Bare { inner: self.tokenizer.inner().with(inner), before, ids })
    }
}

impl Bare {
    fn encode(&self, text: &str, is_first: bool) -> Result<Vec<u32>> {
        let text = if is_first { text.to_owned() } else { format!("{BEFORE}{text}") };
        let ids = self.inner.encode(&text, false)?;
        let ids = ids.get(usize::from(!is_first)..).unwrap_or_default();
        ensure!(!ids.contains(&self.before), "the text has the character U+FDD2, which Unicode reserves");
        Ok(ids.iter().map(|id| *self.ids.get(id).unwrap_or(id)).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Unigram models have the text of a special token as a piece. Other added tokens keep their ids.
    #[test]
    fn a_piece_that_is_a_special_token_is_split() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = ["<unk>", "</s>", "a", "<", "/", "s", ">", "b"];
        let vocab: Vec<_> = pieces.iter().map(|piece| json!([piece, if piece.len() > 1 { 0.0 } else { -1.0 }])).collect();
        let added = |id: u32, content: &str, special: bool| {
            json!({"id": id, "content": content, "special": special, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false})
        };
        let tokens = [added(1, "</s>", true), added(8, "<|user|>", true), added(9, "  ", false)];
        let whole = json!({"version": "1.0", "added_tokens": tokens, "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab}});
        std::fs::write(folder.path().join("tokenizer.json"), whole.to_string()).unwrap();
        let literal = Literal::new(&Tokenizer::load(folder.path()).unwrap());
        assert_eq!(literal.control_texts(), ["<|user|>", "</s>"]);
        let text = "<|user|>a</s>  b</s>";
        assert_eq!(literal.encode(text, &[]).unwrap(), [8, 2, 1, 9, 7, 1]);
        assert_eq!(literal.encode(text, std::slice::from_ref(&(9..13))).unwrap(), [8, 2, 3, 4, 5, 6, 9, 7, 1]);
        assert_eq!(literal.encode(text, &[9..13, 16..20]).unwrap(), [8, 2, 3, 4, 5, 6, 9, 7, 3, 4, 5, 6]);
    }
}
