//! Reads data files and turns their text into token ids.
//!
//! `rows` reads parquet (`parquet_file`, `unfold`) and JSON (`json_file`), and `each_row` works on every row as a JSON object;
//! `tokenizer` (with `added_tokens` and `literal`) and `templates`, `chat` and `content` turn text and conversations into ids,
//! and `written` (with `roles` and `shapes`) refuses what a template leaves out; `prompts` (RL, with `agent_rows`; `alpaca` has
//! questions in several columns) and `examples` (the stages around it) join the two; `reading` says which rows are read, `unread`
//! names columns that are not; `sampler` decides the order of an epoch; `missing` says what would provide a missing column;
//! `prepare` writes data sets; `qwen2_steps` knows how transformers reads tokenizers; `select` makes rows of scored responses;
//! `conversations` reads those that were led; `table` writes a file's rows with one more column.

mod added_tokens;
mod agent_rows;
mod alpaca;
pub mod chat;
mod columns;
mod content;
mod conversations;
mod date;
mod each_row;
pub mod examples;
mod growth;
mod json_file;
mod literal;
pub mod media;
mod missing;
mod parquet_file;
pub mod prepare;
pub mod prompts;
pub mod qwen2_steps;
mod reading;
mod roles;
pub mod rows;
pub mod sampler;
pub mod select;
mod shapes;
mod stop;
pub mod table;
mod template_filters;
mod template_functions;
mod template_limits;
mod template_methods;
mod template_python;
mod template_source;
mod template_values;
mod template_variables;
mod template_wrap;
mod templates;
pub mod tokenizer;
mod truth;
mod unfold;
mod unread;
mod wanted;
mod written;

pub use agent_rows::{AGENT_NAME, AgentRows, selected};
pub use alpaca::columns as columns_of_question;
pub use conversations::{MESSAGES, WrittenConversation};
pub use date::TemplateDate;
pub use examples::{Document, SftExample};
pub use literal::Literal;
pub use missing::{GROUND_TRUTH, with_remedies};
pub use prompts::{Prompt, PromptOptions, PromptText, RowNeeds, Truncation, load_prompts, named_source};
pub use reading::{OnMalformed, Reading, Take};
pub use sampler::{Sampler, SamplerState, Share};
pub use stop::{completes_stop, first_stop, same_bytes};
pub use table::Table;
pub use template_variables::TemplateVariables;
pub use tokenizer::Tokenizer;
pub use truth::ground_truth;
pub use unread::name_unread;
