//! Gemma up to 3: a newline after `<end_of_turn>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// verl 0.9.1 has no rules for these models, and cannot continue them at all: their templates refuse its synthetic conversation.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["gemma", "gemma2", "gemma3", "gemma3_text"],
    doc: "a newline after <end_of_turn>",
    rules: |tokenizer| Newline::after(tokenizer, "<end_of_turn>"),
};
