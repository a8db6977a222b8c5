//! A call of the reward functions and its result.

use std::time::Duration;

/// A text as a response to a row.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Position of the row.
    pub(super) row: usize,
    pub(super) text: String,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// May be NaN or infinite.
    Score(f64),
    Abstained,
    /// The last line of the error.
    Raised(String),
    /// The call took longer than allowed.
    TooSlow,
}

/// The answer to an attempt.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// Reward of each function.
    pub(super) parts: Vec<Option<f64>>,
    /// Time of the call; of a batch, its share.
    pub(super) took: Duration,
}

impl Outcome {
    /// Returns the score if there is a finite one.
    pub(super) fn score(&self) -> Option<f64> {
        match self {
            Self::Score(score) if score.is_finite() => Some(*score),
            _ => None,
        }
    }

    /// Returns true if both calls ended in the same way, apart from rounding.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Score(a), Self::Score(b)) => a.to_bits() == b.to_bits() || same(*a, *b),
            (Self::Abstained, Self::Abstained) | (Self::Raised(_), Self::Raised(_)) => true,
            // The machine may have been busy.
            (Self::TooSlow, _) | (_, Self::TooSlow) => true,
            _ => false,
        }
    }

    /// Describes the result, as in "gets 0.5".
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Score(score) => number(*score),
            Self::Abstained => "no score".to_owned(),
            Self::Raised(error) => format!("the error {error}"),
            Self::TooSlow => "no answer in time".to_owned(),
        }
    }
}

/// Returns true if two scores are equal, apart from rounding.
pub(super) fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-5 * a.abs().max(b.abs()).max(1e-3)
}

/// Writes a score with at most four digits.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 1e4).round() / 1e4;
    if value.abs() >= 1e4 || !value.is_finite() { format!("{value}") } else { format!("{rounded}") }
}
