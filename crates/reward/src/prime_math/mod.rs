//! verl's `utils/reward_score/prime_math`: answers to competition problems. They are compared as text, then as numbers, and, if
//! that does not decide, as mathematics.
//!
//! All that verl decides without sympy is decided here, and so are the cases in which sympy only does arithmetic. Everything else
//! is [`MathVerdict::Undecided`] and left to `math-verify`.

mod compare;
mod dialect;
mod equal;
mod evaluate;
mod extract;
mod grade;
mod latex;
mod mathd;
mod normal;
mod polynomial;
mod python;
mod scorer;
mod sympy;

pub(crate) use compare::graded;
pub use compare::{MathVerdict, compare};
pub use dialect::Dialect;
pub use extract::answer;
pub(crate) use extract::matched_answer;
pub use grade::grade;
pub(crate) use scorer::right;
pub use scorer::{check, score};
