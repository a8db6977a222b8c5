//! Tests of the real `trainer` binary.

mod common;
mod console;
mod control_characters;
mod conversions;
mod critic;
mod data_by_name;
mod end_to_end;
mod estimators;
mod files;
mod generation;
mod golden_runs;
mod hostile;
mod hostile_requests;
mod hub;
mod hub_push;
mod hub_push_server;
mod hub_server;
mod improve;
mod inspect;
mod mistakes;
#[path = "../algorithms/numpy.rs"]
mod numpy;
mod options;
mod record;
mod reference;
mod reliability;
mod resume;
mod reward_model;
mod rewards;
mod secrets;
mod serve_rm;
mod settings;
mod supervised;
mod threads;
mod tldr;
mod validation;
