//! Small tools for all other crates, by folder. Each module is also available at the root: `util::fs` is `util::files::fs`.

pub mod bounds;
pub mod boxed;
pub mod crc;
pub mod files;
pub mod platform;
pub mod protobuf;
pub mod python;
pub mod rng;
pub mod shown;
pub mod strftime;

pub use bounds::{contained, interrupt, limited_memory, machine, sizes};
pub use files::{
    cache, content, copy, data_format, foreign, fs, json_number, jsonl, lock, model_below, no_follow, output, path_text,
};
pub use python::{
    exact_json, json as python_json, literal as python_literal, number as python_number, object as python_object,
    tagged as python_tagged, text as python_text, value as python_value,
};
pub use shown::{excerpt, filler, number, printable, secret, shell, suggest, terminal, time, wrap};
