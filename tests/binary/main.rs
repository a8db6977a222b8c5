//! Tests of the real `trainer` binary.

mod common;
mod console;
mod control_characters;
mod conversions;
mod critic;
mod end_to_end;
mod files;
mod generation;
mod golden_runs;
mod hostile;
mod hostile_requests;
mod improve;
mod inspect;
mod mistakes;
mod options;
mod record;
mod reliability;
mod resume;
mod reward_model;
mod rewards;
mod secrets;
mod serve_rm;
mod settings;
mod supervised;
mod threads;
mod validation;
