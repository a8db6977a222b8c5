//! Weights that an update has broken: NaN, infinite, or too large for a float32 model.

use std::fmt;

use super::sharded_update::weights_of_parameters;
use burnish_model::Gradients;
use burnish_model::decoder::Decoder;
use burnish_model::ops::to_host;

/// Error of an update after which a weight is NaN, infinite, or has a square beyond float32. The update cannot be undone.
#[derive(Debug)]
pub struct BrokenWeights {
    /// [`Learner::name`](super::Learner::name), the section of its settings.
    pub learner: &'static str,
    /// The first such parameter by name.
    pub parameter: String,
    pub lr: f64,
}

impl fmt::Display for BrokenWeights {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { learner, parameter, lr } = self;
        write!(
            f,
            "the update made weights of `{parameter}` NaN, infinite or too large for float32, with a learning rate of {lr:e}; \
             lower {learner}.lr"
        )
    }
}

impl std::error::Error for BrokenWeights {}

/// Returns the first trained parameter, by name, that has an element whose square is not finite in float32. Takes one pass over
/// the weights; on a GPU, one transfer for all of them.
pub(super) fn first_broken(net: &Decoder) -> Option<String> {
    // Reuses the sums of squares of gradients. A sum may overflow although no element does: then the elements are checked.
    let weights = Gradients(weights_of_parameters(net));
    let is_broken = |name: &str| to_host(weights.0[name].clone()).iter().any(|x| !(x * x).is_finite());
    let suspects = weights.squares().filter(|(_, squares)| squares.is_nan() || *squares > f64::from(f32::MAX));
    let first = suspects.map(|(name, _)| name).find(|name| is_broken(name));
    first.map(str::to_owned)
}
