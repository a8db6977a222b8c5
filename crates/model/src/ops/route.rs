//! Connects a dispatch trait to the kernels of each backend.

/// Implements a dispatch trait by the kernels of each backend: `route!(OpTrait, KernelTrait { fn op(a: T, …) = kernel; })`.
macro_rules! route {
    ($op:ident, $kernels:ident { $(fn $f:ident($($a:ident: $t:ty),*) = $k:ident;)* }) => {
        impl $op for burn::backend::Flex {
            $(fn $f($($a: $t),*) -> burn::backend::tensor::FloatTensor<Self> { <Self as $kernels>::$k($($a),*) })*
        }
        #[cfg(feature = "gpu")]
        impl $op for burn::backend::Cube {
            $(fn $f($($a: $t),*) -> burn::backend::tensor::FloatTensor<Self> { <Self as $kernels>::$k($($a),*) })*
        }
    };
}
pub(crate) use route;
