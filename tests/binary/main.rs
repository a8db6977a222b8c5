//! Tests of the real `trainer` binary.

mod common;
mod end_to_end;
mod files;
mod mistakes;
