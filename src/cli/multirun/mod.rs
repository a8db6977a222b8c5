//! `--multirun`: the runs of a sweep, each a process of this program, so that a failed run ends no other.
//!
//! [`plan`] makes the jobs of the command's overrides and checks all their settings; [`resume`] compares them with the record of
//! an earlier process; [`schedule`] starts them, a few at a time, and keeps sweep.json; [`job`] is one process. `in_sweep.rs` is
//! the side of the job.

mod check;
mod command;
mod job;
mod names;
mod plan;
mod resume;
mod schedule;

pub(super) use command::{MultirunArgs, run};
