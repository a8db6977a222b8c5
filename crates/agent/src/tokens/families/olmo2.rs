//! OLMo 2: a newline after `<|endoftext|>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// verl 0.9.1 has no rules for these models; the newline is that of their template.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["olmo2"],
    doc: "a newline after <|endoftext|>",
    rules: |tokenizer| Newline::after(tokenizer, "<|endoftext|>"),
};
