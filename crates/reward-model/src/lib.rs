//! Scores of responses by a reward model: one score for each response ([`model`]), or one for each step ([`steps`]).

pub mod model;
pub mod steps;
