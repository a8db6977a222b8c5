//! Gemma up to 3: a newline after `<end_of_turn>`.

use super::newline::Newline;
use crate::tokens::rules::Family;

/// verl 0.9.1 has no rules for these models, and cannot continue them at all: their templates refuse its synthetic conversation.
pub static FAMILY: Family = Family {
    model_types: &["gemma", "gemma2", "gemma3", "gemma3_text"],
    doc: "a newline after <end_of_turn>",
    rules: |tokenizer| Newline::behind(tokenizer, "<end_of_turn>"),
};
