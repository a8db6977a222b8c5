//! Fused differentiable operations with hand-written backward passes, only for what burn's CPU backend is slow at.
//!
//! Each file holds one operation: its kernel trait (default bodies composed of ordinary tensor ops, which CUDA runs; a
//! fused, threaded body for burn's `flex` CPU backend), the dispatch trait, the autodiff step and the function models call.
//! [`mod@linear`], [`norm`], [`activation`], [`mod@rope`] and [`mod@attention`] take part in autodiff; [`decode`] and [`head`] do not
//! need it.
//! Floats are summed in a fixed order, so results do not depend on the number of threads.

pub mod activation;
pub mod attention;
mod attention_composed;
mod attention_flex;
mod autodiff;
pub mod decode;
mod flex;
pub mod head;
pub mod linear;
pub mod norm;
pub mod packed;
pub mod prepared;
pub mod rope;
mod rows;
mod simd;

pub use activation::{Act, act, glu};
pub use attention::attention;
pub use decode::{BLOCK, CacheView, Places, copy_rows, decode_attention, write_rows};
pub(crate) use flex::{add, cast, f32s, flex_f32, index, own, tensor_from_vec, to_host};
pub use head::{Head, Softcap, head_backward, head_stats};
pub use linear::{linear, linear_frozen};
pub use norm::{layer_norm, rms_norm};
pub use packed::{Packed, Scoring, Segment};
pub use rope::rope;
pub use rows::linear_rows;
pub(crate) use rows::products_on_host;
pub(crate) use simd::{AdamwStep, adamw_row, exp_sub_sum, max_row, sum_squares};

/// Routes a dispatch trait to the kernels of each backend: `route!(OpTrait for KernelTrait { fn op(a: T, …) -> T = kernel })`.
macro_rules! route {
    ($op:ident, $kernels:ident { $(fn $f:ident($($a:ident: $t:ty),*) = $k:ident;)* }) => {
        impl $op for burn::backend::Flex {
            $(fn $f($($a: $t),*) -> burn::backend::tensor::FloatTensor<Self> { <Self as $kernels>::$k($($a),*) })*
        }
        #[cfg(feature = "cuda")]
        impl $kernels for burn::backend::Cube {}
        #[cfg(feature = "cuda")]
        impl $op for burn::backend::Cube {
            $(fn $f($($a: $t),*) -> burn::backend::tensor::FloatTensor<Self> { <Self as $kernels>::$k($($a),*) })*
        }
    };
}
pub(crate) use route;
