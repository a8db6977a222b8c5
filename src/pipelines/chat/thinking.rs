//! The thinking in an answer that arrives in pieces: between `<think>` and `</think>`.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits a text at the tags of thinking. The tags count as thinking.
#[derive(Debug, Default)]
pub(super) struct ThinkingSplit {
    is_inside: bool,
    /// The beginning of a possible tag.
    held: String,
}

impl ThinkingSplit {
    /// `is_inside`: true if the prompt has opened the thinking already.
    pub(super) fn new(is_inside: bool) -> Self {
        Self { is_inside, held: String::new() }
    }

    /// Returns the parts of the text that are complete, each with true if it is thinking.
    pub(super) fn push(&mut self, text: &str) -> Vec<(bool, String)> {
        let mut rest = std::mem::take(&mut self.held) + text;
        let mut parts = Vec::new();
        loop {
            let tag = if self.is_inside { CLOSE } else { OPEN };
            if let Some(at) = rest.find(tag) {
                let cut = if self.is_inside { at + tag.len() } else { at };
                parts.push((self.is_inside, rest[..cut].to_owned()));
                rest.drain(..cut);
                if !self.is_inside {
                    parts.push((true, tag.to_owned()));
                    rest.drain(..tag.len());
                }
                self.is_inside = !self.is_inside;
                continue;
            }
            let begun = (1..tag.len()).rev().find(|length| rest.ends_with(&tag[..*length])).unwrap_or(0);
            self.held = rest.split_off(rest.len() - begun);
            parts.push((self.is_inside, rest));
            parts.retain(|(_, part)| !part.is_empty());
            return parts;
        }
    }

    /// Returns the rest.
    pub(super) fn finish(&mut self) -> (bool, String) {
        (self.is_inside, std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a text is cut into pieces, the parts are the same.
    #[test]
    fn tags_are_found_across_pieces() {
        for (text, is_inside, thinking) in [
            ("<think>a<b</think>c", false, "<think>a<b</think>"),
            ("a</think>b<thin", true, "a</think>"),
            ("a <think> b", false, "<think> b"),
            ("</think>é", false, ""),
            ("plain", false, ""),
        ] {
            for size in 1..=text.len() {
                let mut split = ThinkingSplit::new(is_inside);
                let letters: Vec<char> = text.chars().collect();
                let pieces = letters.chunks(size).map(|piece| piece.iter().collect::<String>());
                let mut parts: Vec<(bool, String)> = pieces.flat_map(|piece| split.push(&piece)).collect();
                parts.push(split.finish());
                let all: String = parts.iter().map(|(_, part)| part.as_str()).collect();
                let found: String = parts.iter().filter(|(is_thinking, _)| *is_thinking).map(|(_, part)| part.as_str()).collect();
                assert_eq!((all.as_str(), found.as_str()), (text, thinking), "{size}");
            }
        }
    }
}
