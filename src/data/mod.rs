//! Reads data files and turns their text into token ids.
//!
//! `rows` reads parquet (`parquet_file`, `unfold`) and JSON (`json_file`), and `each_row` works on every row as a JSON object; `tokenizer` (with `added_tokens` and `literal`) and `templates`, `chat` and `content` turn
//! text and conversations into ids; `prompts` (RL, with `agent_rows`) and `examples` (the stages around it) join the two; `sampler` decides the order
//! of an epoch; `missing` says what would provide a missing column; `prepare` writes data sets; `select` makes rows of scored responses; `table` writes a file's rows with one more column.

mod added_tokens;
mod agent_rows;
pub mod chat;
mod columns;
mod content;
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
pub mod rows;
pub mod sampler;
pub mod select;
mod stop;
pub mod table;
mod template_functions;
mod template_limits;
mod template_python;
mod template_variables;
mod templates;
pub mod tokenizer;
mod unfold;
mod wanted;

pub use agent_rows::{AGENT_NAME, AgentRows, selected};
pub use date::TemplateDate;
pub use examples::{Document, SftExample};
pub use literal::Literal;
pub use missing::{GROUND_TRUTH, with_remedies};
pub use prompts::{Prompt, PromptOptions, PromptText, RowNeeds, Truncation, load_prompts, named_source, take_samples};
pub use sampler::{Sampler, SamplerState, Share};
pub use stop::completes_stop;
pub use table::Table;
pub use template_variables::TemplateVariables;
pub use tokenizer::Tokenizer;
