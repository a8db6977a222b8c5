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

mod files;

pub use prompts::{Prompt, PromptOptions, Truncation, load_prompts, take_samples};
pub use sampler::{Sampler, SamplerState};
pub use sft::{SftExample, SftOptions, load_sft};
pub use tokenizer::Tokenizer;

/// ` Did you mean "x"?` for the closest of `known`, or nothing when none is close.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(_, candidate)| format!(" Did you mean \"{candidate}\"?"))
}
