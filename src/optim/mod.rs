//! The optimizer: AdamW with global-norm clipping, and learning-rate schedules.

pub mod adamw;
pub mod schedule;

pub use adamw::{AdamW, AdamWConfig};
