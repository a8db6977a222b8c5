//! Reads data files and turns their text into token ids.
//!
//! - `files`: parquet and JSON as rows ([`rows`]), the choice of rows and columns, and tables to write ([`table`]);
//! - `template`: chat templates ([`chat`]), and a check that a template writes every message;
//! - `tokens`: the [`tokenizer`] of a model folder;
//! - [`prompts`] joins the three for reinforcement learning, and [`examples`] for `sft`, `dpo`, `rm` and `distill`;
//! - [`sampler`] decides the order of an epoch;
//! - [`prepare`] writes data sets, and [`select`] makes rows of scored responses.

pub mod examples;
mod files;
mod long_tools;
pub mod prepare;
mod prompt_text;
pub mod prompts;
pub mod sampler;
pub mod select;
mod teacher_prompt;
mod template;
mod tokens;

pub use examples::{CHANGED_ROWS, Document, SftExample};
pub use files::agent_rows::{AGENT_NAME, AgentRows, selected};
pub use files::alpaca::columns as columns_of_question;
pub use files::conversations::{MESSAGES, WrittenConversation};
pub use files::ground_truth::GroundTruthKey;
pub use files::missing_columns::with_remedies;
pub use files::row_selection::{OnMalformed, RowSelection, Take};
pub use files::table::RowTable;
pub use files::unread_columns::name_unread;
pub use files::write_rows::{check_writes_rows, write_rows};
pub use files::{media, rows, table};
pub use prompt_text::{PromptForm, PromptText};
pub use prompts::{Prompt, PromptOptions, RowNeeds, Truncation, data_source, load_prompts, named_source};
pub use sampler::{Sampler, SamplerState, Share};
pub use teacher_prompt::{ContextPlace, RepromptForm, TeacherPromptForm, with_context};
pub use template::chat;
pub use template::date::TemplateDate;
pub use template::variables::TemplateVariables;
pub use tokens::literal::Literal;
pub use tokens::stop::{completes_stop, first_stop, same_bytes};
pub use tokens::tokenizer::Tokenizer;
pub use tokens::{qwen2_steps, tokenizer};
