//! Commands, scripts and files of verl, TRL and OpenRLHF as settings of burnish.
//!
//! [`shell`] reads a script, [`peers`] finds the trainer's command in it and reads its options, and one module for each library
//! converts those options by a table.

pub mod from_openrlhf;
pub mod from_trl;
pub mod from_verl;
pub mod peers;
pub mod shell;
