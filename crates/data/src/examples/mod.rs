//! Rows as token ids for the other stages: `trainer sft`, `dpo`, `rm` and `distill`.
//!
//! | file | rows |
//! |---|---|
//! | `sft/`, `document` | supervised examples: ids, and the weight of every token in the loss |
//! | `pair` | a prompt with a chosen and a rejected answer |
//! | `unpaired` | a prompt with an answer and a label: desired or undesired |
//! | `steps` | a text with labels at its steps |
//!
//! Shared: `text_column` (text or messages), `row_variables` (a row's variables for the chat template), `overlong`,
//! `prompt_boundary` (the first token of an answer), and `tally` (counts skipped rows by reason).

mod document;
mod overlong;
mod pair;
mod place;
mod prompt_boundary;
mod row_variables;
mod sft;
mod steps;
mod tally;
mod text_column;
mod unpaired;

pub use document::{Document, SftExample};
pub use overlong::Overlong;
pub use pair::{PairColumns, PairOptions, ScoredPart, TokenizedPair, load_pairs, read_pairs};
pub use place::RowPlace;
pub use row_variables::ChatColumns;
pub use sft::{AnswerTokens, TwoTexts, load_two_texts, read_two_texts};
pub use sft::{AssistantMask, LossMask, Packing, SftColumns, SftOptions, load_sft, pack, read_sft};
pub use steps::{LabelledSteps, StepLabel, StepMark, StepOptions, StepRows, load_steps, read_steps};
pub use tally::{CHANGED_ROWS, ReadRows, Tally};
pub use unpaired::{Unpaired, UnpairedColumns, UnpairedOptions, load_unpaired, read_unpaired};
