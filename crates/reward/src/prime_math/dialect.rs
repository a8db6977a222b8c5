//! Differences between the two users of the grader.

/// Differences between the graders that descend from PRM800K's.
pub struct Dialect {
    /// Spellings of a percent sign that the first normal form removes.
    pub percent: &'static [&'static str],
    /// True if liters are a unit.
    pub(crate) liters: bool,
    /// True if the second normal form removes spaces and braces.
    pub bare: bool,
}
