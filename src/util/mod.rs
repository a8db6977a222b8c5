//! Small tools for the rest of the crate: files that are never half-written, named random streams, checksums, signals.

pub mod choice;
pub mod copy;
pub mod crc;
pub mod exact_json;
pub mod excerpt;
pub mod fs;
pub mod interrupt;
pub mod json_number;
pub mod jsonl;
pub mod lock;
pub mod model_below;
pub mod number;
pub mod output;
pub mod path_text;
pub mod printable;
pub mod protobuf;
pub mod python_text;
pub mod python_value;
pub mod rng;
pub mod secret;
pub mod shell;
pub mod strftime;
pub mod suggest;
pub mod terminal;
pub mod time;
