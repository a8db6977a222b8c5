//! `trainer runs`: lists, shows, compares and deletes runs.

mod command;
mod delete;
mod diff;
mod ls;
mod row;
mod samples;

pub(super) use command::{RunsCommand, run};
