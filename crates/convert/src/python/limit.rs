//! The limits of an evaluation. Values beyond a limit are unknown, so messages name the limit.

/// A limit that a script reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvaluationLimit {
    Steps,
    Calls,
    Rounds,
    Branches,
    Items,
    Range,
    Length,
}

impl EvaluationLimit {
    /// Limit of evaluated statements and expressions, and of the work for large values.
    pub(super) const STEPS: usize = 100_000;
    /// Limit of nested calls of the script's own functions.
    pub(super) const CALLS: usize = 24;
    /// Limit of rounds of a loop.
    pub(super) const ROUNDS: usize = 64;
    /// Limit of the branches of an `if`.
    pub(super) const BRANCHES: usize = 64;
    /// Limit of the items of a comprehension.
    pub(super) const ITEMS: usize = 1024;
    /// Limit of the items of a `range`.
    pub(super) const RANGE: usize = 4096;
    /// Limit of the length of a text or list that the script makes.
    pub(super) const LENGTH: usize = 100_000;

    /// Describes the part of the script that is beyond the limit, and the limit.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Steps => format!(
                "the script needs more than {} steps (a step is a statement, an expression, or 500 bytes of a value), and what \
                 follows is not read",
                Self::STEPS
            ),
            Self::Calls => format!("functions call each other more than {} deep, and the result is unknown", Self::CALLS),
            Self::Rounds => format!("a loop has more than {} rounds, and the values that it changes are unknown", Self::ROUNDS),
            Self::Branches => format!("an `if` has more than {} branches, and is not read", Self::BRANCHES),
            Self::Items => format!("a comprehension has more than {} items, and is unknown", Self::ITEMS),
            Self::Range => format!("a range has more than {} items, and is unknown", Self::RANGE),
            Self::Length => {
                format!("a text or list has {} or more characters or items, and is unknown", Self::LENGTH)
            }
        }
    }
}
