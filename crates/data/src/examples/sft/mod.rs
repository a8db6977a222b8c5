//! Rows of supervised fine-tuning: a plain text, a prompt and its answer, or a conversation. `options` says which columns they
//! are in and what of them is learnt; `text`, `answer` and `conversation` read one row each; `learnt_turns` finds what the assistant
//! says by the template's marks, or in the whole conversation (`rendered`, `find_turn`, `probe`), and sees that its text is there
//! (`check_learnt`); `read` works on files, `packing` joins documents to units of a batch.

mod answer;
mod check_learnt;
mod conversation;
mod find_turn;
mod learnt_turns;
mod options;
mod packing;
mod probe;
mod read;
mod rendered;
mod text;
mod tokens;

pub use options::{AssistantMask, LossMask, SftColumns, SftOptions};
pub use packing::{Packing, pack};
pub use read::{load_sft, read_sft};
