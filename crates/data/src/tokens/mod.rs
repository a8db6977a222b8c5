//! The tokenizer of a model folder: its special tokens, its checks, and text encoded without special tokens.

pub mod added_tokens;
pub mod literal;
pub mod qwen2_steps;
pub mod stop;
pub mod tokenizer;
pub mod tokenizer_expansion;
