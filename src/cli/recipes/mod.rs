//! `trainer recipes` lists the recipes that come with the program; `trainer init` writes one.

mod columns;
mod init;
mod lengths;
mod list;
mod shipped;
mod starters;

pub(super) use init::{InitArgs, run as init};
pub(super) use list::{RecipesArgs, run};
