//! The native engine: samples from the actor itself, with its own kernels and weights, without copies.
//!
//! Batching is continuous: sequences decode together, one that ends leaves, and the next waiting sample takes its place. A prompt
//! is prefilled once; its samples share its blocks of the key/value cache.
//!
//! On the CPU, in float32, the results of a sequence do not depend on its neighbours, because the order in which a row is summed
//! does not.

mod engine;
mod generation;
mod lookahead;
mod one_turn;
mod running;
mod waiting;

pub use engine::NativeEngine;
