//! Granite 3 and 4: a newline after `<|end_of_text|>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// verl 0.9.1 has no rules for these models; the newline is that of their templates.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["granite", "granitemoehybrid"],
    doc: "a newline after <|end_of_text|>",
    rules: |tokenizer| Newline::after(tokenizer, "<|end_of_text|>"),
};
