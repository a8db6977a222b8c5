//! Rows with too many tokens.

/// Note for a row that loses its beginning or its end.
pub(super) const CUT: &str = "are cut at data.max_length";

/// The treatment of a sequence with more than `max_length` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    Error,
    /// The row is skipped.
    Filter,
    /// The sequence loses its beginning (TRL's `keep_end`).
    Left,
    /// The sequence loses its end (TRL's `keep_start`). A row with an answer keeps its prompt, and is skipped if its prompt is
    /// too long by itself.
    Right,
}
