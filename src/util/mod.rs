//! Small tools the rest of the crate stands on: files that are never half-written, named random streams, checksums.

pub mod crc;
pub mod fs;
pub mod jsonl;
pub mod rng;
pub mod suggest;
