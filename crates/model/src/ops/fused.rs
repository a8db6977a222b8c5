//! Several operations in one kernel, for passes without gradients on a GPU. In other cases these functions gain nothing, so call
//! them only if [`available`].

use burn::tensor::{FloatDType, Tensor};

use super::block_tables::Tables;
use super::packed::AttentionScoring;

/// The parameters of a norm: weight `[d]`, for LayerNorm a bias `[d]`, eps, and the offset added to the weight.
pub struct FusedNorm {
    pub weight: Tensor<1>,
    pub bias: Option<Tensor<1>>,
    pub eps: f64,
    pub offset: f64,
}

#[cfg(feature = "gpu")]
mod gpu {
    use burn::backend::Cube;
    use burn::tensor::{DType, Int};
    use burn_cubecl::cubecl::server::Handle;

    use super::*;
    use crate::ops::cube::heads::{FinishParams, finish_heads};
    use crate::ops::cube::launch::{of_gpu, on_gpu, primitive};
    use crate::ops::cube::norm;
    use crate::ops::cube::paged::{LARGEST_HEAD, Paged, decode_attention};

    /// True if x is on a GPU, outside any graph, in a dtype that the kernels support (not f64).
    pub fn available<const D: usize>(x: &Tensor<D>) -> bool {
        x.dtype() != DType::F64 && on_gpu(x).is_some()
    }

    /// Returns x + y (or x without y), [n, h], and its norm in `dtype`; `None` unless [`available`].
    pub fn norm_of_sum(
        x: &Tensor<2>,
        y: Option<&Tensor<2>>,
        by: &FusedNorm,
        dtype: FloatDType,
    ) -> Option<(Tensor<2>, Tensor<2>)> {
        if !available(x) {
            return None;
        }
        let (weight, bias) = (primitive(by.weight.clone()), by.bias.clone().map(primitive));
        let (dtype, input) = (DType::from(dtype), primitive(x.clone()));
        Some(match y {
            Some(y) => {
                let [sum, normed] = norm::norm_of_sum([input, primitive(y.clone())], weight, bias, by.eps, by.offset, dtype);
                (of_gpu(sum), of_gpu(normed))
            }
            None => (x.clone(), of_gpu(norm::norm(input, weight, bias, by.eps, by.offset, dtype))),
        })
    }

    /// Adds biases to the projections q [n, heads · d], k and v [n, kv heads · d], then normalises and rotates the heads of q and
    /// k -> [n, heads, d]. Steps that the model lacks are `None`. `sizes` are heads, kv heads and d.
    ///
    /// # Panics
    /// Unless [`available`]; if only some projections have a bias, or only one of q and k has a norm.
    pub fn heads(
        products: [Tensor<2>; 3],
        sizes: [usize; 3],
        biases: [Option<Tensor<1>>; 3],
        norms: [Option<FusedNorm>; 2],
        rotation: Option<&(Tensor<2>, Tensor<2>)>,
    ) -> [Tensor<3>; 3] {
        let bias = match biases {
            [Some(q), Some(k), Some(v)] => Some([q, k, v].map(primitive)),
            [None, None, None] => None,
            _ => panic!("only some projections of attention have a bias"),
        };
        let norm = match norms {
            [Some(q), Some(k)] => Some(([q.weight, k.weight].map(primitive), q.eps, q.offset)),
            [None, None] => None,
            _ => panic!("only one of queries and keys has a norm"),
        };
        let rotation = rotation.map(|(cos, sin)| [cos, sin].map(|angles| primitive(angles.clone())));
        finish_heads(products.map(primitive), sizes, FinishParams { bias, norm, rotation }).map(of_gpu)
    }

    /// True if `paged_attention` supports this head size.
    pub fn fits(head_dim: usize) -> bool {
        head_dim <= LARGEST_HEAD
    }

    /// True if [`paged_attention`] supports q [rows, heads, d].
    pub(crate) fn attends(q: &Tensor<3>) -> bool {
        available(q) && fits(q.dims()[2])
    }

    /// The GPU memory of the tensor.
    pub fn memory(x: &Tensor<2>) -> Handle {
        primitive(x.clone()).handle
    }

    /// Attends with q [rows, heads, d] to the caches of keys and values [blocks · BLOCK, kv heads · d] -> [rows, heads, d]. If
    /// given, the `new` keys and values of the last positions [rows, kv heads · d] are first written to the caches.
    ///
    /// # Panics
    /// Unless it [`attends`].
    pub(crate) fn paged_attention(
        q: Tensor<3>,
        new: Option<[Tensor<2>; 2]>,
        cache: [&mut Tensor<2>; 2],
        tables: &Tables,
        scoring: AttentionScoring,
    ) -> Tensor<3> {
        let [keys, values] = cache.map(|cache| primitive(cache.clone()));
        let index = |x: &Tensor<1, Int>| x.clone().try_into_primitive::<Cube>().expect("made on the device of q");
        let paged = Paged { keys, values, table: index(&tables.blocks), lens: index(&tables.lens) };
        of_gpu(decode_attention(primitive(q), paged, new.map(|new| new.map(primitive)), scoring))
    }
}

#[cfg(not(feature = "gpu"))]
mod gpu {
    use super::*;

    const NONE: &str = "a build without GPUs has no kernels for them";

    /// False in a build without GPUs.
    pub fn available<const D: usize>(_: &Tensor<D>) -> bool {
        false
    }

    /// Returns `None` in a build without GPUs.
    pub fn norm_of_sum(_: &Tensor<2>, _: Option<&Tensor<2>>, _: &FusedNorm, _: FloatDType) -> Option<(Tensor<2>, Tensor<2>)> {
        None
    }

    /// Never called in a build without GPUs.
    pub fn heads(
        _: [Tensor<2>; 3],
        _: [usize; 3],
        _: [Option<Tensor<1>>; 3],
        _: [Option<FusedNorm>; 2],
        _: Option<&(Tensor<2>, Tensor<2>)>,
    ) -> [Tensor<3>; 3] {
        unreachable!("{NONE}")
    }

    /// False in a build without GPUs.
    pub(crate) fn attends(_: &Tensor<3>) -> bool {
        false
    }

    /// Never called in a build without GPUs.
    pub(crate) fn paged_attention(
        _: Tensor<3>,
        _: Option<[Tensor<2>; 2]>,
        _: [&mut Tensor<2>; 2],
        _: &Tables,
        _: AttentionScoring,
    ) -> Tensor<3> {
        unreachable!("{NONE}")
    }
}

pub(crate) use gpu::{attends, paged_attention};
pub use gpu::{available, heads, norm_of_sum};
#[cfg(feature = "gpu")]
pub use gpu::{fits, memory};
