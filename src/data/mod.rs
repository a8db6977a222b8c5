//! From files on disk to token ids.
//!
//! `rows` reads parquet and JSON into JSON objects; `tokenizer` and `chat` turn text and conversations into ids; `prompts`
//! (RL), `sft` and `messages` (supervised) join the two; `sampler` decides the order of an epoch; `prepare` writes data sets,
//! `table` a file's rows with a column more.

pub mod chat;
mod columns;
pub mod messages;
pub mod prepare;
pub mod prompts;
pub mod rows;
pub mod sampler;
pub mod sft;
mod stop;
pub mod table;
mod template_functions;
mod template_python;
pub mod tokenizer;

pub use prompts::{Prompt, PromptOptions, PromptText, RowNeeds, Truncation, load_prompts, named_source, take_samples};
pub use sampler::{Sampler, SamplerState};
pub use sft::{SftColumns, SftExample, SftOptions, load_sft};
pub use stop::completes_stop;
pub use table::Table;
pub use tokenizer::Tokenizer;
