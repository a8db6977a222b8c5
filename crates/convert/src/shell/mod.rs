//! Shell scripts, read as far as a launching script goes without running anything: `brush-parser` gives bash's syntax tree, and
//! [`read`] walks it with the values that can be known, and lists the programs that the script would start.
//!
//! A value that only a run could tell is a [`Unknown`] in the words. A condition that cannot be known takes both ways: what differs
//! afterwards is a unknown. Steps, nesting and the length of the variables are bounded.

mod arithmetic;
mod builtins;
mod compound;
mod conditions;
mod env;
mod input;
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
mod text;
mod words;

pub use env::ShellEnv;
pub use read::{ScriptCalls, read};
pub use text::{ProgramCall, ShellError, Unknown, mark, replace_unknowns, unknowns_in};
