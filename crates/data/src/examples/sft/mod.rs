//! Rows of supervised fine-tuning: a plain text, a prompt and its answer, or a conversation. `options` says which columns they
//! are in and what of them is learnt; `text`, `answer` and `conversation` read one row each; `turns` finds what the assistant
//! says by the template's marks, or in the whole conversation (`whole`, `found`, `probe`), and sees that its text is there
//! (`kept`); `read` works on files, `packing` joins documents to units of a batch.

mod answer;
mod conversation;
mod found;
mod kept;
mod options;
mod packing;
mod probe;
mod read;
mod text;
mod tokens;
mod turns;
mod whole;

pub use options::{AssistantMask, LossMask, SftColumns, SftOptions};
pub use packing::{Packing, pack};
pub use read::{load_sft, read_sft};
