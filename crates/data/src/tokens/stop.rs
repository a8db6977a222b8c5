//! Stop strings: texts that end a response.

use super::tokenizer::Tokenizer;

/// Returns the first stop text that ends after byte `before` of `text`, by start position. Stop texts must not be empty.
pub fn first_stop<'a>(text: &str, before: usize, stop: &'a [String]) -> Option<(usize, &'a str)> {
    let found = stop.iter().filter_map(|stop| {
        let from = (before + 1).saturating_sub(stop.len());
        let from = (from..text.len()).find(|&at| text.is_char_boundary(at))?;
        Some((from + text[from..].find(stop.as_str())?, stop.as_str()))
    });
    found.min_by_key(|(at, _)| *at)
}

/// Returns the number of bytes in the common prefix of two texts.
pub fn same_bytes(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Returns true if the last token of a response completes a stop text. `specials`: true if special tokens have a text. Stop texts
/// must not be empty.
pub fn completes_stop(tokenizer: &Tokenizer, stop: &[String], ids: &[u32], specials: bool) -> bool {
    let longest = stop.iter().map(String::len).max().unwrap_or(0);
    // Only the end is decoded, since this runs for every token. The beginning of a stop text may lie its full length in bytes
    // before the last token, and tokens without text may follow. 8 more bytes allow for a character that is cut at the beginning.
    // Undecodable tokens are reported where the response is decoded.
    let text = |ids: &[u32]| tokenizer.decode(ids, !specials).unwrap_or_default();
    let last = ids.len().saturating_sub(1);
    let mut tail = last.min(longest + 8);
    let mut before = text(&ids[last - tail..last]);
    while tail < last && before.len() < longest + 8 {
        tail = last.min(2 * tail);
        before = text(&ids[last - tail..last]);
    }
    let after = text(&ids[last - tail..]);
    first_stop(&after, same_bytes(&before, &after), stop).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    /// Returns a tokenizer of some letters, bytes of characters and two special tokens.
    fn tokenizer() -> Tokenizer {
        let folder = tempfile::tempdir().unwrap();
        let texts = ["<unk>", "<pad>", "<eos>", "a", "b", "ab", "bX", "XXXXXXXXXXXXXXXXXXXXXXXXXX", "<0xC3>", "<0xA9>", " "];
        let vocab: Map<_, _> = texts.iter().enumerate().map(|(id, text)| ((*text).to_owned(), json!(id))).collect();
        let special = |id: usize| json!({"id": id, "content": texts[id], "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
            "added_tokens": [special(1), special(2)],
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
        });
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
        Tokenizer::load(folder.path()).unwrap()
    }

    /// Returns true if the whole text has a stop text that ends after the text of all tokens except the last.
    fn naive(tokenizer: &Tokenizer, stop: &[String], ids: &[u32], specials: bool) -> bool {
        let whole = tokenizer.decode(ids, !specials).unwrap();
        let before = tokenizer.decode(&ids[..ids.len() - 1], !specials).unwrap();
        let same = before.bytes().zip(whole.bytes()).take_while(|(a, b)| a == b).count();
        stop.iter().any(|stop| whole.rfind(stop.as_str()).is_some_and(|at| at + stop.len() > same))
    }

    proptest! {
        #[test]
        fn a_stop_text_is_found_wherever_the_whole_text_has_it(
            ids in prop::collection::vec(prop_oneof![3 => 1_u32..3, 2 => 3_u32..11], 1..60),
            which in prop::collection::vec(0_usize..6, 1..3),
            specials in any::<bool>(),
        ) {
            thread_local!(static TOKENIZER: Tokenizer = tokenizer());
            let stop: Vec<String> = which.iter().map(|i| ["ab", "bX", "\u{e9}", "a b", "aaab", "a<eos>"][*i].to_owned()).collect();
            TOKENIZER.with(|tokenizer| {
                prop_assert_eq!(completes_stop(tokenizer, &stop, &ids, specials), naive(tokenizer, &stop, &ids, specials));
                Ok(())
            })?;
        }
    }
}
