//! `trainer self-check`: shows in seconds if this machine computes right numbers and has what runs need. Reports of defects
//! should contain its output.

mod command;
mod determinism;
mod finding;
mod kernels;
mod machine;
mod python;

pub(crate) use command::{SelfCheckArgs, run};
