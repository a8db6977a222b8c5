//! A calculator: exact for integers, and like Python for decimals.

mod expression;
mod number;
mod tool;

pub use expression::evaluate;
pub(super) use tool::CALCULATOR;
