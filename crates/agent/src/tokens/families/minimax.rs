//! MiniMax: a newline after `[e~[`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// Matches verl 0.9.1 (`MiniMaxContinuousTokenBuilder`).
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["minimax", "minimax_text_01", "minimax_m2"],
    doc: "a newline after [e~[",
    rules: |tokenizer| Newline::after(tokenizer, "[e~["),
};
