//! A supervised example as sequences of the model.

use crate::pipelines::stage::StageExample;
use burnish_data::{Document, SftExample};
use burnish_model::Sequence;

impl StageExample for SftExample {
    /// One sequence for each document.
    fn sequences(&self) -> Vec<Sequence<'_>> {
        let parts = self.documents.iter().map(Document::parts);
        parts.map(|(prompt, response, _)| Sequence::new(prompt, response)).collect()
    }

    fn targets(&self) -> Vec<f64> {
        weights(self).into_iter().map(f64::from).collect()
    }
}

/// Returns the sum of the weights of all predicted tokens of some examples, the divisor of a mean over them.
pub(in crate::pipelines) fn total_weight(examples: &[&SftExample]) -> f64 {
    examples.iter().flat_map(|example| weights(example)).map(f64::from).sum()
}

/// Returns the weight of every predicted token of an example.
pub(in crate::pipelines) fn weights(example: &SftExample) -> Vec<f32> {
    example.documents.iter().flat_map(|document| document.parts().2).copied().collect()
}
