//! The entry of a step of reward shaping.

/// A row of [`SHAPINGS`](super::SHAPINGS).
pub struct Shaping {
    pub name: &'static str,
    /// The documentation of the entry, in the format of [`Estimator::doc`](crate::advantage::Estimator::doc).
    pub doc: &'static str,
}
