//! The formats in which models write tool calls: one file each, selected by `multi_turn.format`.
//!
//! Nine of them parse every text exactly as verl 0.9.1; the others follow vLLM's parsers of 2025. `response` has the templates by
//! which TRL parses a turn.

mod blocks;
mod deepseek_v3;
mod deepseek_v4;
#[cfg(test)]
mod example;
mod format;
mod formats;
mod gemma;
mod gemma4;
mod glm;
mod gpt_oss;
mod granite;
mod hermes;
mod kimi;
mod llama3_json;
mod minimax;
mod mistral;
mod parse;
mod pythonic;
mod qwen3_coder;
pub mod response;
mod schema;
mod seed;
mod thinking;

pub use format::{CallFormat, ParsedTurn, ToolCall};
pub use formats::{FORMATS, format_named, format_of_template};
pub use parse::parse;
pub use thinking::{HiddenThinking, ignore_in_thinking};
