//! Kernels of our own for GPUs, written once in CubeCL for every device that burn has.
//!
//! Each file holds one family of kernels: what runs on the device, and the function that launches it on tensors of burn. They take
//! the place of compositions of burn's operations, which are the reference in their tests. Numbers are read and written in the
//! dtype of their tensors and computed in f32. Nothing is added atomically: results do not depend on timing.

mod activation;
mod attention;
pub mod begin;
mod blocks;
mod choose;
pub mod chunk;
mod columns;
mod exact;
pub mod head;
pub mod head_compared;
pub mod head_top_k;
pub mod heads;
pub mod launch;
mod linear;
pub mod norm;
pub mod optim;
pub mod paged;
pub mod recorded;
mod rope;
pub mod rows;
pub mod sample;
pub mod scatter;
mod split;
mod sum;
