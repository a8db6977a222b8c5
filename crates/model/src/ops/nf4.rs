//! y = x·wᵀ with a frozen weight [out, in] in NF4. On the CPU, some rows of the weight at a time are turned into float32, so that
//! the matrix never exists as a whole. Generation and training use the same kernel, which sums an element in one order for all other
//! rows. GPUs have their own kernels in `cube/nf4.rs`.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{FloatDType, Shape, Tensor};
use rayon::prelude::*;

use super::attention_flex::Out;
use super::autodiff::simple;
use super::flex::*;
use super::rows::panel;
use crate::nf4::Nf4Weight;

type Weight = Arc<Nf4Weight>;

/// The number of rows of x that stay in cache while the rows of a tile are read.
const ROWS: usize = 64;
/// Values of a tile of the forward pass. Each thread holds one tile.
const TILE: usize = 64 * 1024;
/// Rows of the weight in a tile of the backward pass. Their products are added up in order.
const BACKWARD: usize = 256;

pub(crate) trait Nf4Kernels: Backend {
    /// `x [n, in] -> [n, out]`
    fn product(x: FloatTensor<Self>, w: Weight) -> FloatTensor<Self>;
    /// Returns the gradient of x.
    fn product_bwd(dy: FloatTensor<Self>, w: Weight) -> FloatTensor<Self>;
}

impl Nf4Kernels for Flex {
    fn product(x: FlexTensor, w: Weight) -> FlexTensor {
        let w = w.on_host();
        let (x, n, [m, k]) = (dense(x.clone()), x.shape()[0], w.shape());
        let (xs, mut y) = (f32s(&x), vec![0.0; n * m]);
        assert_eq!(xs.len(), n * k);
        let to = Out(y.as_mut_ptr());
        let rows = (TILE / k).clamp(4, 64).next_multiple_of(4);
        (0..m.div_ceil(rows)).into_par_iter().for_each_init(Vec::new, |tile, task| {
            let own = task * rows..m.min((task + 1) * rows);
            tile.resize(own.len() * k, 0.0);
            w.read_rows(own.clone(), tile);
            for (block, xs) in xs.chunks(ROWS * k).enumerate() {
                // SAFETY: the columns `own` of y belong to this task alone, and the rows of the block are inside y.
                unsafe { panel(xs, tile, k, to.at(block * ROWS * m + own.start), m) }
            }
        });
        from_vec(y, Shape::from([n, m]))
    }

    fn product_bwd(dy: FlexTensor, w: Weight) -> FlexTensor {
        let w = w.on_host();
        let (dy, n, [m, k]) = (dense(dy.clone()), dy.shape()[0], w.shape());
        let (dys, mut dx, mut tile) = (f32s(&dy), vec![0.0; n * k], Vec::new());
        for first in (0..m).step_by(BACKWARD) {
            let count = BACKWARD.min(m - first);
            tile.resize(count * k, 0.0);
            tile.par_chunks_mut(k).enumerate().for_each(|(row, tile)| w.read_rows(first + row..first + row + 1, tile));
            if n > 0 {
                matmul((n, k, count), &mut dx, (k, 1), first > 0, &dys[first..], (m, 1), &tile, (k, 1), threads(n, k, count));
            }
        }
        from_vec(dx, Shape::from([n, k]))
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait Nf4Op: Backend {
    fn nf4_linear(x: FloatTensor<Self>, w: Weight) -> FloatTensor<Self>;
}
super::route::route!(Nf4Op, Nf4Kernels {
    fn nf4_linear(x: FloatTensor<Self>, w: Weight) = product;
});

impl<B: Nf4Kernels, C: CheckpointStrategy> Nf4Op for Autodiff<B, C> {
    fn nf4_linear(x: FloatTensor<Self>, w: Weight) -> FloatTensor<Self> {
        simple::<B, C, _, 1, 0>([x], w, |[x], w| B::product(x, w.clone()), |[], w, dy| [B::product_bwd(dy, w)])
    }
}

/// Computes `x [n, in], weight [out, in], bias [out] -> [n, out]`, without gradients of weight and bias. The result is in x's dtype.
/// On the CPU the product is in float32. On a GPU the values of the weight are rounded to x's dtype, as bitsandbytes does.
///
/// # Panics
/// If the inner sizes differ, or x and the weight are on different devices.
pub(crate) fn linear_nf4(x: Tensor<2>, weight: &Weight, bias: Option<Tensor<1>>) -> Tensor<2> {
    assert_eq!(x.dims()[1], weight.shape()[1], "{:?} by the transpose of {:?}", x.dims(), weight.shape());
    let dtype = FloatDType::from(x.dtype());
    let x = if weight.is_on_host() { cast(x, FloatDType::F32) } else { x };
    let y = cast(Tensor::from_dispatch(Dispatch::nf4_linear(x.into_dispatch(), weight.clone())), dtype);
    match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::nf4::Nf4Matrix;
    use crate::ops::{linear_frozen, linear_rows};

    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step % 1013) as f32 - 500.0) / 500.0).collect()
    }

    /// The product is that with the dequantised matrix, bit for bit; so is its gradient, up to the order of the sum.
    #[test]
    fn products_are_those_of_the_dequantised_matrix() {
        let device = Device::flex();
        for (n, m, k, double) in [(1, 1, 1, false), (5, 70, 67, true), (130, 300, 192, true), (3, 9, 64, false)] {
            let matrix = Nf4Matrix::new(&values(m * k, 613), [m, k], double);
            let whole: Tensor<2> = tensor_from_vec(matrix.values(), [m, k], &device);
            let w = Arc::new(Nf4Weight::new(matrix, &device));
            let x: Tensor<2> = tensor_from_vec(values(n * k, 7919), [n, k], &device);
            let bias: Tensor<1> = tensor_from_vec(values(m, 31), [m], &device);
            let (ours, theirs) =
                (linear_nf4(x.clone(), &w, Some(bias.clone())), linear_rows(x.clone(), whole.clone(), Some(bias)));
            assert_eq!(to_host(ours), to_host(theirs), "{n}x{m}x{k}");

            let weights: Tensor<2> = Tensor::from_inner(tensor_from_vec(values(n * m, 17), [n, m], &device));
            let gradient = |product: &dyn Fn(Tensor<2>) -> Tensor<2>| {
                let x = Tensor::from_inner(x.clone()).require_grad();
                let y = product(x.clone());
                let trained = to_host(y.clone().inner());
                (to_host(x.grad(&(y * weights.clone()).sum().backward()).unwrap()), trained)
            };
            let (dx, y) = gradient(&|x| linear_nf4(x, &w, None));
            assert_eq!(y, to_host(linear_nf4(x.clone(), &w, None)), "generation and training differ");
            let (expected, _) = gradient(&|x| linear_frozen(x, Tensor::from_inner(whole.clone()), None));
            let scale = expected.iter().fold(1f32, |max, x| max.max(x.abs()));
            dx.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-5 * scale, "{n}x{m}x{k}: {a}, {b}"));
        }
    }
}
