//! `trainer from-verl`: converts a command line or script of verl to a recipe.
//!
//! It first applies the overrides to verl's own keys by Hydra's rules, and so refuses what verl refuses, with a better message.
//! It then converts the changed keys by the table of [`burnish_config::compat`].

mod block;
mod convert;
mod converted;
mod find;
mod groups;
mod invocation;
mod programs;
mod recipe;

pub use convert::convert;
pub use converted::{Blocked, VerlConversion, VerlSource};
pub use find::is_command;
