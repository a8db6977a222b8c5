//! Supervised examples.

/// One sequence of tokens: a row, or several rows one after another in `wrapped` packing.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub ids: Vec<u32>,
    /// For each of `ids`, its weight in the loss: 0 if predicting it is not learnt, 1 if it is, or what the row says. The first
    /// token of a sequence is given and never predicted, whatever its weight.
    pub weights: Vec<f32>,
}

/// A unit of the batch: one document, or with packing several, each of which stays a sequence of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SftExample {
    /// At least one.
    pub documents: Vec<Document>,
}

impl Document {
    /// Returns the tokens that are given, those that are predicted, and the weights of these. All tokens before the first that is
    /// learnt are given (at least one), so that they cost no head.
    pub fn parts(&self) -> (&[u32], &[u32], &[f32]) {
        let learnt = self.weights.iter().skip(1).position(|weight| *weight != 0.0);
        let at = learnt.map_or(self.ids.len() - 1, |before| before + 1).max(1);
        (&self.ids[..at], &self.ids[at..], &self.weights[at..])
    }

    /// Returns true if predicting one of the tokens is learnt.
    pub fn learns(&self) -> bool {
        self.weights.iter().skip(1).any(|weight| *weight != 0.0)
    }
}

impl SftExample {
    /// Returns an example of a single document.
    pub fn of(document: Document) -> Self {
        Self { documents: vec![document] }
    }

    /// Returns the number of tokens of all documents.
    pub fn tokens(&self) -> usize {
        self.documents.iter().map(|document| document.ids.len()).sum()
    }
}
