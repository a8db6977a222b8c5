//! Python's rules for numbers, text, JSON and literals.

pub mod exact_json;
pub mod json;
pub mod literal;
pub mod number;
pub mod object;
pub mod tagged;
pub mod text;
pub mod value;
