//! `trainer replay` and `trainer bisect`: steps of an earlier run, made again and looked into.

mod again;
mod bisect;
mod command;
mod obstacles;
mod outcome;
mod proof;
mod recorded;
mod settings;
mod text;

pub(super) use bisect::{BisectArgs, run as bisect};
pub(super) use command::{ReplayArgs, run};
