//! Qwen 2 and later: a newline after `<|im_end|>`.

use super::newline::Newline;
use crate::tokens::rules::TokenFamily;

/// Matches verl 0.9.1 (`QwenContinuousTokenBuilder`), which lacks the types of text models and of Qwen3-Next.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &[
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_5",
        "qwen3_5_text",
        "qwen3_5_moe",
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "qwen3_vl_moe",
    ],
    doc: "a newline after <|im_end|>",
    rules: |tokenizer| Newline::after(tokenizer, "<|im_end|>"),
};
