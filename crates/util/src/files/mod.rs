//! Files and folders: written atomically, read with limits, locked, compared.

pub mod cache;
pub mod content;
pub mod copy;
pub mod data_format;
pub mod foreign;
pub mod fs;
pub mod json_number;
pub mod jsonl;
pub mod lock;
pub mod model_below;
pub mod no_follow;
#[cfg(test)]
mod no_follow_tests;
pub mod output;
pub mod path_text;
