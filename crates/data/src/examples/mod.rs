//! Rows of the stages around reinforcement learning as token ids: what `trainer sft`, `dpo`, `rm` and `distill` learn from.
//!
//! | file | rows |
//! |---|---|
//! | `sft/`, `document` | supervised examples: ids, and the weight of every token in the loss |
//! | `pair` | a prompt with a chosen and a rejected answer |
//! | `unpaired` | a prompt and an answer that is wanted or not |
//! | `steps` | a text with judgements at its steps |
//!
//! They share `said` (columns that hold text or messages), `row_variables` (what a row adds to the chat template), `overlong`,
//! `seam` (where a prompt ends and its answer begins, in tokens), and `tally`: whatever is left out is counted, with its reason
//! and first rows.

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
pub use pair::{Pair, PairColumns, PairOptions, ScoredPart, load_pairs, read_pairs};
pub use place::RowPlace;
pub use row_variables::ChatColumns;
pub use sft::{AssistantMask, LossMask, Packing, SftColumns, SftOptions, load_sft, pack, read_sft};
pub use steps::{StepLabel, StepMark, StepOptions, StepRows, Steps, load_steps, read_steps};
pub use tally::{ReadRows, Tally};
pub use unpaired::{Unpaired, UnpairedColumns, load_unpaired, read_unpaired};
