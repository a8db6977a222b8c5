//! `--multirun`: the runs of a sweep, each a process of this program, so that a failed run ends no other.
//!
//! [`plan`] makes the jobs of the command's overrides and checks all their settings; [`resume`] compares them with the record of
//! an earlier process; [`schedule`] starts them, a few at a time, and keeps sweep.json; [`job`] is one process. [`in_job`] is the
//! side of the job.

mod command;
mod in_job;
mod job;
mod plan;
mod resume;
mod schedule;

pub(super) use command::{Describe, MultirunArgs, run};
pub(super) use in_job::follow_parent;
