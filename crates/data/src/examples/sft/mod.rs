//! Rows of supervised fine-tuning: a plain text, a prompt with an answer, or a conversation. `options` has the columns and the
//! learnt parts. `text`, `answer` and `conversation` each read one kind of row. `learnt_turns` finds the assistant's text by the
//! template's marks or in the rendered conversation (`rendered`, `find_turn`, `probe`), and checks that the text is complete
//! (`check_learnt`). `read` reads files, and `packing` joins documents.
//! `two_tokenizers` reads rows for two models with other tokens, whose answers `answer_text` compares.

mod answer;
mod answer_text;
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
mod two_tokenizers;

pub use answer_text::AnswerTokens;
pub use options::{AssistantMask, LossMask, SftColumns, SftOptions};
pub use packing::{Packing, pack};
pub use read::{load_sft, read_sft};
pub use two_tokenizers::{TwoTexts, load_two_texts, read_two_texts};
