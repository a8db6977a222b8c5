//! Rows of too many tokens.

/// The note of a row that loses its beginning or its end.
pub(super) const CUT: &str = "are cut at data.max_length";

/// The treatment of a sequence with more than `max_length` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    Error,
    /// The row is left out.
    Filter,
    /// The sequence loses its beginning (TRL's `keep_end`).
    Left,
    /// The sequence loses its end (TRL's `keep_start`). A row with an answer keeps its prompt: one whose prompt alone is as long
    /// is left out.
    Right,
}
