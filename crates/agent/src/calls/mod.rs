//! The formats in which models write tool calls: one file each, selected by `multi_turn.format`.
//!
//! Nine of them parse every text exactly as verl 0.9.1; the others follow vLLM's parsers. `response` has the templates by
//! which TRL parses a turn.

mod blocks;
mod cohere;
mod deepseek_v3;
mod deepseek_v4;
#[cfg(test)]
mod example;
mod format;
mod formats;
mod functiongemma;
mod gemma;
mod gemma4;
mod glm;
mod gpt_oss;
mod granite;
mod harmony;
mod hermes;
mod kimi;
mod lfm2;
mod llama3_json;
mod minimax;
mod mistral;
mod olmo3;
mod parse;
mod phi4_mini;
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
