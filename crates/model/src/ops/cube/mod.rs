//! GPU kernels, written once in CubeCL for every device that burn supports.
//!
//! Each file holds one family of kernels: the device code, and the functions that launch it on burn's tensors. The kernels
//! replace compositions of burn's operations, which are the reference in their tests. Values are read and written in the dtype of
//! their tensors and computed in f32. There are no atomic additions, so results do not depend on timing.

mod activation;
mod attention;
mod blocks;
mod choose;
pub(crate) mod chunk;
mod columns;
pub(crate) mod decode_prologue;
mod exact;
pub(crate) mod head;
pub(crate) mod head_compared;
pub(crate) mod head_top_k;
pub(crate) mod heads;
pub(crate) mod launch;
mod linear;
mod nf4;
pub(crate) mod norm;
pub(crate) mod optim;
pub(crate) mod paged;
pub(crate) mod recorded;
mod rope;
pub(crate) mod rows;
pub mod sample;
pub(crate) mod scatter;
mod split;
mod sum;
