//! A calculator: exact on whole numbers, and as Python on decimals.

mod expression;
mod number;
mod tool;

pub use expression::evaluate;
pub(super) use tool::CALCULATOR;
