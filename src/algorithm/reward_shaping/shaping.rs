//! The entry of a step of reward shaping.

/// A row of [`SHAPINGS`](super::SHAPINGS).
pub struct Shaping {
    pub name: &'static str,
    /// As that of an estimator.
    pub doc: &'static str,
}
