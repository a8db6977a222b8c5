//! Conversion of commands, scripts and files of verl, TRL and OpenRLHF to settings of burnish.
//!
//! [`shell`] evaluates a script, [`peers`] finds the trainer's command and reads its options, and one module for each library
//! converts the options by a table.

pub mod from_openrlhf;
pub mod from_trl;
pub mod from_verl;
pub mod peers;
mod python;
pub mod shell;
