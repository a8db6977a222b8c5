//! GPU kernels, written once in CubeCL for every device that burn supports.
//!
//! Each file holds one family of kernels: the device code, and the functions that launch it on burn's tensors. The kernels
//! replace compositions of burn's operations, which are the reference in their tests. Values are read and written in the dtype of
//! their tensors and computed in f32. There are no atomic additions, so results do not depend on timing.

mod activation;
mod attention;
mod blocks;
mod choose;
pub mod chunk;
mod columns;
pub mod decode_prologue;
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
