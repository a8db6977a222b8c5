//! Limits on memory, time and sizes, and requests to stop.

pub mod contained;
pub mod interrupt;
pub mod limited_memory;
pub mod machine;
pub mod sizes;
