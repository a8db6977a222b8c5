//! Shares of counts.

/// Returns a share; 0 of nothing.
pub(super) fn share_of(count: usize, all: usize) -> f64 {
    count as f64 / all.max(1) as f64
}
