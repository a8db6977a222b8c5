//! `trainer doctor`: names why a run does not learn, from its configuration or from its record.

mod before;
mod command;
mod explain;
mod show;

pub(crate) use command::{DoctorArgs, run};
