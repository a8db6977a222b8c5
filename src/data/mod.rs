//! From files on disk to token ids.
//!
//! `rows` reads parquet and JSON into JSON objects; `tokenizer` and `chat` turn text and conversations into ids; `prompts`
//! (RL) and `sft` (supervised) join the two; `sampler` decides the order of an epoch; `prepare` writes data sets.

pub mod chat;
pub mod prepare;
pub mod prompts;
pub mod rows;
pub mod sampler;
pub mod sft;
mod template_functions;
pub mod tokenizer;

pub use prompts::{Prompt, PromptOptions, Truncation, load_prompts, take_samples};
pub use sampler::{Sampler, SamplerState};
pub use sft::{SftExample, SftOptions, load_sft};
pub use tokenizer::Tokenizer;
