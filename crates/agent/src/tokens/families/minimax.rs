//! MiniMax: a newline behind `[e~[`.

use super::newline::Newline;
use crate::tokens::rules::Family;

/// As in verl 0.9.1 (`MiniMaxContinuousTokenBuilder`).
pub static FAMILY: Family = Family {
    model_types: &["minimax", "minimax_text_01", "minimax_m2"],
    doc: "a newline behind [e~[",
    rules: |tokenizer| Newline::behind(tokenizer, "[e~["),
};
