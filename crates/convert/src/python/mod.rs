//! Evaluation of Python scripts without running them.
//!
//! [`read`] walks through a script as Python would, from the top to the bottom and into its own functions. Calls of libraries are
//! recorded and not executed; their results and everything that depends on these results are unknown, with the line. Assignments,
//! arithmetic, texts, lists, dicts, dataclasses and parsers of arguments have their values. If a condition is unknown, both
//! branches are walked, and names that differ afterwards are unknown.

mod arguments;
mod builtins;
mod calls;
mod classes;
mod depth;
mod expressions;
mod limit;
mod machine;
mod methods;
mod operators;
mod read;
mod script;
mod statements;
mod value;

pub(crate) use limit::EvaluationLimit;
pub(crate) use machine::ScriptRead;
pub(crate) use read::read;
pub(crate) use script::PyScript;
pub(crate) use value::{LibraryCall, NESTED, PARTS, PyValue};
