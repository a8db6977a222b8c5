//! ChatML outside Qwen: a newline after `<|im_end|>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// verl 0.9.1 has no rules for these models; the newline is that of their templates.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["smollm3", "olmo3", "lfm2", "arcee"],
    doc: "a newline after <|im_end|>",
    rules: |tokenizer| Newline::after(tokenizer, "<|im_end|>"),
};
