//! `trainer from-verl`: converts a command line or script of verl into a recipe.
//!
//! The overrides are first applied to verl's own keys by Hydra's rules, so that this program refuses what verl refuses, with a
//! better message. The changed keys are then sorted by the table of [`super::compat`].

mod block;
mod convert;
mod converted;
mod groups;
mod programs;
mod recipe;

pub use convert::convert;
pub use converted::{Blocked, VerlConversion, VerlSource};
