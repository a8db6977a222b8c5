//! Where rows become other tokens than in TRL, OpenRLHF or verl, each with its reason. Everything else is equal.

/// A difference that is meant.
pub enum Difference {
    /// Where a token reaches over the seam of prompt and answer, TRL trains on the end of the prompt. Here the prompt keeps the ids
    /// that generation gives it, and the answer is tokenized by itself: the text is the same.
    Seam,
    /// A pair whose sides are equal, or an answer of which the cut leaves nothing, teaches nothing and is left out.
    Nothing,
    /// TRL ends the marked part at the first token of its last character, where this has several: the others are then not trained.
    LastCharacter,
    /// OpenRLHF writes a space before the end of a text, and takes away newlines before it.
    End,
    /// verl trains on the newline after the token that ends a turn, and where that is a token of the template's, not on the first
    /// token of an answer.
    Header,
    /// verl's truncation=left without padding cuts on the right.
    Left,
}

/// The cases that differ.
#[derive(Default)]
pub struct Seen(Vec<(Difference, String)>);

impl Seen {
    pub fn note(&mut self, difference: Difference, of: &str) {
        self.0.push((difference, of.to_owned()));
    }

    /// Fails unless at least as many rows as this were equal for each that differs.
    pub fn are_few(&self, equal: usize) {
        let named: Vec<&str> = self.0.iter().map(|(_, of)| of.as_str()).collect();
        assert!(equal >= named.len(), "{equal} equal, and {}", named.join(", "));
    }
}
