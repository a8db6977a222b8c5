//! EXAONE 4: a newline after `[|endofturn|]`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// verl 0.9.1 has no rules for these models; the newline is that of their template.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["exaone4"],
    doc: "a newline after [|endofturn|]",
    rules: |tokenizer| Newline::after(tokenizer, "[|endofturn|]"),
};
