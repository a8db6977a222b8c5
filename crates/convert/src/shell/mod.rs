//! Evaluation of launch scripts without running a program: `brush-parser` returns bash's syntax tree, and [`read`] evaluates it
//! and lists the programs that the script would start.
//!
//! A value that depends on a real run becomes an [`Unknown`] in the words. An unknown condition evaluates both branches;
//! variables that differ afterwards are unknown. Steps, nesting and all bytes that a script produces are limited (`budget.rs`).

mod arithmetic;
mod budget;
mod builtins;
mod compound;
mod conditions;
mod env;
mod input;
mod launchers;
mod launches;
mod limits;
mod machine;
mod nested;
mod parameters;
mod patterns;
mod pieces;
mod printf;
mod programs;
mod read;
mod simple;
mod state;
mod target;
mod text;
mod words;

pub use env::ShellEnv;
pub use launches::{Launch, ScriptCalls, message as message_of_launches};
pub use read::read;
pub use target::{StartedProgram, TargetForm, targets};
pub(crate) use text::unknowns_in;
pub use text::{ProgramCall, ShellError, Unknown, mark, replace_unknowns};
