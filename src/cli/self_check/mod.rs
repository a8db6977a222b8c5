//! `trainer self-check`: shows in seconds if this machine computes right numbers and has what runs need. A report of a bug asks for
//! its output.

mod command;
mod determinism;
mod finding;
mod kernels;
mod machine;
mod python;

pub(crate) use command::{SelfCheckArgs, run};
