//! The examples of a stage.

use burnish_model::Sequence;

/// One tokenized row: a text, a pair of responses, … Batches and micro-batches have whole examples.
pub trait StageExample: Clone {
    /// Returns the sequences for the model; their responses are predicted.
    fn sequences(&self) -> Vec<Sequence<'_>>;

    /// Returns the values, other than ids, that the loss reads: weights, labels, a margin.
    fn targets(&self) -> Vec<f64>;
}
