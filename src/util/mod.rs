//! Small tools the rest of the crate stands on: files that are never half-written, named random streams, checksums, signals.

pub mod crc;
pub mod exact_json;
pub mod fs;
pub mod interrupt;
pub mod jsonl;
pub mod lock;
pub mod number;
pub mod output;
pub mod protobuf;
pub mod python_text;
pub mod python_value;
pub mod rng;
pub mod strftime;
pub mod suggest;
pub mod time;
