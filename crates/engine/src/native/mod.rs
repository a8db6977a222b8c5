//! The native engine: samples from the actor itself, with its own kernels and weights, and copies nothing.
//!
//! Batching is continuous: sequences decode together, one that ends leaves, and the next waiting sample takes its place. A prompt
//! is prefilled once; its samples share the blocks of the key/value cache that it fills.
//!
//! On the CPU, in float32, no number of a sequence depends on its neighbours: the order in which a row is summed does not.

mod ahead;
mod engine;
mod generation;
mod listed;
mod running;
mod waiting;

pub use engine::NativeEngine;
