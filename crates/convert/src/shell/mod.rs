//! Shell scripts, read as far as a launching script goes without running anything: `brush-parser` gives bash's syntax tree, and
//! [`read`] walks it with the values that can be known, and lists the programs that the script would start.
//!
//! A value that only a run could tell is a [`Hole`] in the words. A condition that cannot be known takes both ways: what differs
//! afterwards is a hole. Steps, nesting and the length of the variables are bounded.

mod arithmetic;
mod builtins;
mod compound;
mod conditions;
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
mod surroundings;
mod text;
mod words;

pub use read::{Read, read};
pub use surroundings::Surroundings;
pub use text::{Call, Hole, ShellError, holes_of, mark, replace_holes};
