//! The text of an incomplete response: only text that no further token changes, and that cannot become a stop text.

use burnish_data::{Tokenizer, first_stop};

/// The number of tokens without a whole character after which their text is sent verbatim.
const LONGEST_CHARACTER: usize = 32;

/// The length in bytes of the longest text that loses its space, ` n't`.
const LONGEST_CLEANED: usize = 4;

/// The text of an incomplete sequence of tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamText {
    ids: Vec<u32>,
    /// The first token to decode, so that the next is decoded in context.
    context: usize,
    /// The first token whose text is still to be decoded.
    read: usize,
    /// Text from the beginning of a stop text, or of a possible one.
    held: String,
}

impl StreamText {
    /// Takes a token, and returns the text that is now final; the tokens before must not have completed a stop text. `specials`
    /// is true if special tokens are shown.
    pub(super) fn push(&mut self, tokenizer: &Tokenizer, stops: &[String], specials: bool, id: u32) -> String {
        if !specials && tokenizer.is_special(id) {
            return String::new();
        }
        self.ids.push(id);
        let new = self.decode(tokenizer, specials, false);
        self.release(tokenizer.cleans_up(), stops, new)
    }

    /// Returns the rest of the text: held-back text and incomplete characters.
    pub(super) fn finish(&mut self, tokenizer: &Tokenizer, specials: bool) -> String {
        let new = self.decode(tokenizer, specials, true);
        self.take_in(new);
        std::mem::take(&mut self.held)
    }

    /// Decodes the pending tokens, if they end with a whole character. Returns their text, and the number of bytes before it that
    /// they change.
    fn decode(&mut self, tokenizer: &Tokenizer, specials: bool, is_end: bool) -> (usize, String) {
        // A token that cannot be decoded is reported when the whole response is decoded.
        let text = |ids: &[u32]| tokenizer.decode(ids, !specials).unwrap_or_default();
        let (before, after) = (text(&self.ids[self.context..self.read]), text(&self.ids[self.context..]));
        let is_open = after.ends_with('\u{fffd}') || self.ids.last().is_some_and(|last| tokenizer.is_byte(*last));
        let is_cut = is_open && self.ids.len() - self.read < LONGEST_CHARACTER;
        if is_cut && !is_end {
            return (0, String::new());
        }
        self.context = self.read;
        self.read = self.ids.len();
        let same: usize = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        (before.len() - same, after.get(same..).unwrap_or_default().to_owned())
    }

    fn take_in(&mut self, (changed, new): (usize, String)) {
        let stays = (0..=self.held.len().saturating_sub(changed)).rfind(|at| self.held.is_char_boundary(*at));
        self.held.truncate(stays.unwrap_or(0));
        self.held.push_str(&new);
    }

    /// Takes new text, and returns the text before any stop text in it that cannot begin one. `cleans_up` is true if a space can
    /// still be removed.
    fn release(&mut self, cleans_up: bool, stops: &[String], new: (usize, String)) -> String {
        let before = self.held.len().saturating_sub(new.0);
        self.take_in(new);
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let begins = |at: &usize| {
            self.held.is_char_boundary(*at) && stops.iter().any(|stop| stop.as_bytes().starts_with(&self.held.as_bytes()[*at..]))
        };
        let begun = (from..self.held.len()).find(begins).unwrap_or(self.held.len());
        let at = first_stop(&self.held, before, stops).map_or(begun, |(at, _)| at.min(begun));
        let tail = (self.held.len().saturating_sub(LONGEST_CLEANED)..).find(|at| self.held.is_char_boundary(*at)).unwrap_or(0);
        let at = self.held[tail..].find(' ').filter(|_| cleans_up).map_or(at, |space| at.min(tail + space));
        let rest = self.held.split_off(at);
        std::mem::replace(&mut self.held, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_before_a_stop_text_comes_out_whole() {
        let stops = ["END".to_owned(), "\n\n".to_owned()];
        let run = |pieces: &[&str]| {
            let mut text = StreamText::default();
            let mut out: Vec<String> = pieces.iter().map(|piece| text.release(false, &stops, (0, (*piece).to_owned()))).collect();
            out.push(std::mem::take(&mut text.held));
            out
        };
        assert_eq!(run(&["aE", "Nx", "E"]), ["a", "ENx", "", "E"]);
        assert_eq!(run(&["aE", "N", "Db"]), ["a", "", "", "ENDb"]);
        assert_eq!(run(&["é\n", "é\n", "\n"]), ["é", "\né", "", "\n\n"]);
        assert_eq!(run(&["xEEND"]), ["xE", "END"]);
        assert_eq!(run(&["aEND", "bE", "c"]), ["a", "ENDb", "Ec", ""], "what did not end the answer is text");
    }
}
