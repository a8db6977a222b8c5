//! Stop strings: texts that end a response.

use super::Tokenizer;

/// Whether the last token of a response completes one of the texts, where the token before did not. Special tokens have no
/// text. The texts must not be empty.
pub fn completes_stop(tokenizer: &Tokenizer, stop: &[String], ids: &[u32]) -> bool {
    let longest = stop.iter().map(String::len).max().unwrap_or(0);
    // Enough of the end, without decoding the whole response again for every token; 8 bytes more for what is cut at its
    // beginning, which may be part of a character. A token that cannot be decoded is reported where the response is.
    let text = |ids: &[u32]| tokenizer.decode(ids, true).unwrap_or_default();
    let mut tail = ids.len().min(longest + 8);
    let mut after = text(&ids[ids.len() - tail..]);
    while tail < ids.len() && after.len() < longest + 8 {
        tail = ids.len().min(2 * tail);
        after = text(&ids[ids.len() - tail..]);
    }
    let before = text(&ids[ids.len() - tail..ids.len().saturating_sub(1)]);
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    stop.iter().any(|stop| after.rmatch_indices(stop.as_str()).any(|(at, found)| at + found.len() > same))
}
