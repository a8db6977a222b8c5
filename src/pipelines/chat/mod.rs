//! `trainer chat`: a conversation with a model in the terminal, or one answer to the text of standard input.
//!
//! `settings` loads the model and its tools from the settings of `trainer generate`. A [`Partner`] answers messages through the
//! parts of `trainer serve`: its service reads a request, and its engine samples the tokens. `dialogue` reads lines, `commands` are
//! those that begin with a slash, and `shown` writes answers.

mod commands;
mod dialogue;
mod history;
mod partner;
mod settings;
mod shown;
mod thinking;

pub(crate) use dialogue::{all_input, one_answer, talk};
pub(crate) use settings::{ChatOptions, open};
pub(crate) use shown::is_dialogue;
