//! The tokenizer of a model folder: its special tokens, its checks, and text encoded without special tokens.

pub(crate) mod added_tokens;
pub(crate) mod foreign_tokenizer;
#[cfg(test)]
mod foreign_tokenizer_tests;
pub(crate) mod literal;
pub mod qwen2_steps;
pub(crate) mod stop;
pub mod tokenizer;
pub(crate) mod tokenizer_expansion;
