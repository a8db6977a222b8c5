//! Supervised examples: token ids with a loss weight each.

/// One sequence of tokens: a row, or several rows in a row with `wrapped` packing.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub ids: Vec<u32>,
    /// Loss weight of each id: 0 if not learnt, 1 if learnt, or the row's weight. The first token is never predicted and its
    /// weight is ignored.
    pub weights: Vec<f32>,
}

/// An item of a batch: one document, or several with packing. Each document is a separate sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SftExample {
    /// The documents, at least one.
    pub documents: Vec<Document>,
}

impl Document {
    /// Returns the context tokens, the predicted tokens and the weights of the predicted tokens. All tokens before the first
    /// learnt one are context (at least one), so the head does not compute them.
    pub fn parts(&self) -> (&[u32], &[u32], &[f32]) {
        let learnt = self.weights.iter().skip(1).position(|weight| *weight != 0.0);
        let at = learnt.map_or(self.ids.len() - 1, |before| before + 1).max(1);
        (&self.ids[..at], &self.ids[at..], &self.weights[at..])
    }

    /// Returns true if at least one token is learnt.
    pub fn learns(&self) -> bool {
        self.weights.iter().skip(1).any(|weight| *weight != 0.0)
    }
}

impl SftExample {
    /// Returns an example with a single document.
    pub fn single(document: Document) -> Self {
        Self { documents: vec![document] }
    }

    /// Returns the total number of tokens.
    pub fn tokens(&self) -> usize {
        self.documents.iter().map(|document| document.ids.len()).sum()
    }
}
