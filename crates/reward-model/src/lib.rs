//! Scores of responses by a reward model: one score per response ([`model`]), or one per step ([`steps`]).

pub mod model;
pub mod steps;
