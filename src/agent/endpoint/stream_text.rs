//! The text of an answer while its tokens come: only what no further token changes, and nothing that may become a stop text.

use crate::data::Tokenizer;

/// The number of tokens without a whole character after which their text is sent as it is.
const LONGEST_CHARACTER: usize = 32;

/// The text of a sequence of tokens that is not complete yet.
#[derive(Clone, Debug, Default)]
pub struct StreamText {
    ids: Vec<u32>,
    /// The first of the tokens that are decoded, so that the next is decoded in its context.
    context: usize,
    /// The first token whose text has not been taken over.
    read: usize,
    /// Text that may be the beginning of a stop text.
    held: String,
    /// The stop text that was found; nothing comes after it.
    found: Option<String>,
}

impl StreamText {
    /// Takes a token, and returns the text that is sure now. `specials`: true if special tokens are shown.
    pub fn push(&mut self, tokenizer: &Tokenizer, stops: &[String], specials: bool, id: u32) -> String {
        if !specials && tokenizer.is_special(id) {
            return String::new();
        }
        self.ids.push(id);
        let new = self.decode(tokenizer, specials, false);
        self.release(stops, &new)
    }

    /// The rest of the text: what was held back, or is no whole character.
    pub fn finish(&mut self, tokenizer: &Tokenizer, stops: &[String], specials: bool) -> String {
        let new = self.decode(tokenizer, specials, true);
        let sure = self.release(stops, &new);
        sure + &std::mem::take(&mut self.held)
    }

    /// The stop text that ended the answer.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// The text of the tokens that have not been taken over, if it ends with a whole character.
    fn decode(&mut self, tokenizer: &Tokenizer, specials: bool, is_end: bool) -> String {
        // A token that cannot be decoded is reported where the answer is decoded.
        let text = |ids: &[u32]| tokenizer.decode(ids, !specials).unwrap_or_default();
        let (before, whole) = (text(&self.ids[self.context..self.read]), text(&self.ids[self.context..]));
        let is_cut = whole.ends_with('\u{fffd}') && self.ids.len() - self.read < LONGEST_CHARACTER;
        if is_cut && !is_end {
            return String::new();
        }
        self.context = self.read;
        self.read = self.ids.len();
        let same = before.chars().zip(whole.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        whole.get(same..).unwrap_or_default().to_owned()
    }

    /// Takes new text, and returns what is before any stop text, and cannot be the beginning of one.
    fn release(&mut self, stops: &[String], new: &str) -> String {
        if self.found.is_some() {
            return String::new();
        }
        self.held.push_str(new);
        let first = stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop))).min_by_key(|(at, _)| *at);
        if let Some((at, stop)) = first {
            self.found = Some(stop.clone());
            let sure = self.held[..at].to_owned();
            self.held.clear();
            return sure;
        }
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let begins = |at: &usize| {
            self.held.is_char_boundary(*at) && stops.iter().any(|stop| stop.as_bytes().starts_with(&self.held.as_bytes()[*at..]))
        };
        let at = (from..self.held.len()).find(begins).unwrap_or(self.held.len());
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
            let mut out: Vec<String> = pieces.iter().map(|piece| text.release(&stops, piece)).collect();
            out.push(std::mem::take(&mut text.held));
            (out, text.found)
        };
        let owned = |pieces: &[&str]| pieces.iter().map(|piece| (*piece).to_owned()).collect::<Vec<_>>();
        assert_eq!(run(&["aE", "Nx", "E"]), (owned(&["a", "ENx", "", "E"]), None));
        assert_eq!(run(&["aE", "N", "Db", "c"]), (owned(&["a", "", "", "", ""]), Some("END".to_owned())));
        assert_eq!(run(&["é\n", "é\n", "\n"]), (owned(&["é", "\né", "", ""]), Some("\n\n".to_owned())));
        assert_eq!(run(&["xEEND"]), (owned(&["xE", ""]), Some("END".to_owned())));
    }
}
