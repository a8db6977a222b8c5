//! Rows whose tokens differ from TRL, OpenRLHF or verl, each with its reason. All other rows are equal.

/// An intended difference.
pub(super) enum Difference {
    /// A token spans the seam of prompt and response, and TRL trains on the end of the prompt. Here the prompt keeps the ids that
    /// generation gives it, and the response is tokenized by itself: the text is the same.
    Seam,
    /// A pair whose sides are equal, or a response that is empty after the cut, teaches nothing and is left out.
    Nothing,
    /// If the last character of the marked part has several tokens, TRL ends the part at the first of them: the others are not
    /// trained.
    LastCharacter,
    /// OpenRLHF writes a space before the end token of a text, and removes newlines before it.
    End,
    /// verl trains on the newline after the token that ends a turn. If that newline is a token of the template, verl does not
    /// train on the first token of a response.
    Header,
    /// verl's truncation=left without padding cuts on the right.
    Left,
}

/// The differing cases.
#[derive(Default)]
pub(super) struct Seen(Vec<(Difference, String)>);

impl Seen {
    pub(super) fn note(&mut self, difference: Difference, of: &str) {
        self.0.push((difference, of.to_owned()));
    }

    /// Fails unless at least this many rows are equal for each row that differs.
    pub(super) fn are_few(&self, equal: usize) {
        let named: Vec<&str> = self.0.iter().map(|(_, of)| of.as_str()).collect();
        assert!(equal >= named.len(), "{equal} equal, and {}", named.join(", "));
    }
}
