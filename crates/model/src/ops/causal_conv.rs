//! Causal depthwise convolution over packed rows: y[t, c] = Σ_j w[c, j]·x[t − (k − 1) + j, c]. Tokens before the first of a
//! sequence count as 0. After a shared stem, each branch continues from the stem's last rows.
//!
//! The CPU has a kernel with its own backward pass; other backends compose the sum of ordinary tensor operations.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use super::attention_flex::Out;
use super::autodiff::simple;
use super::flex::*;
use super::packed::{Packed, Segment};
use super::simd::{fma, multiversion};

/// Channels of a task.
const CHANNELS: usize = 256;

multiversion! {
    // y += w · x, elementwise.
    pub(super) fn add_products = add_products_(w: &[f32], x: &[f32], y: &mut [f32]);
}

#[inline(always)]
fn add_products_<const F: bool>(w: &[f32], x: &[f32], y: &mut [f32]) {
    for ((y, &w), &x) in y.iter_mut().zip(w).zip(x) {
        *y = fma::<F>(w, x, *y);
    }
}

impl Segment {
    /// The row of a position of the sequence.
    pub(super) fn row(&self, position: usize) -> usize {
        match position.checked_sub(self.stem.len()) {
            None => self.stem.start + position,
            Some(own) => self.rows.start + own,
        }
    }

    /// Calls `see` with the taps of each row of this segment: the row, the tap j and the row that tap reads.
    fn taps(&self, size: usize, mut see: impl FnMut(usize, usize, usize)) {
        for position in self.stem.len()..self.keys() {
            let row = self.row(position);
            for tap in (size - 1).saturating_sub(position)..size {
                see(row, tap, self.row(position + tap + 1 - size));
            }
        }
    }
}

/// The weights [channels, k] as [k, channels].
fn taps_first(w: &[f32], size: usize) -> Vec<f32> {
    let channels = w.len() / size;
    (0..size).flat_map(|tap| (0..channels).map(move |c| w[c * size + tap])).collect()
}

/// Runs `task` on each tree and each block of channels, with the index of the tree and the block.
fn for_each(packed: &Packed, channels: usize, task: impl Fn(usize, std::ops::Range<usize>) + Sync) {
    let blocks = channels.div_ceil(CHANNELS);
    (0..packed.trees.len() * blocks).into_par_iter().for_each(|i| {
        let first = i % blocks * CHANNELS;
        task(i / blocks, first..channels.min(first + CHANNELS));
    });
}

pub(crate) trait ConvKernels: Backend {
    fn conv_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, packed: &Packed) -> FloatTensor<Self>;
    /// Returns the gradients of x and w.
    fn conv_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>, packed: &Packed) -> [FloatTensor<Self>; 2];
}

impl ConvKernels for Flex {
    fn conv_fwd(x: FlexTensor, w: FlexTensor, packed: &Packed) -> FlexTensor {
        let [x, w] = [x, w].map(dense);
        let ([rows, channels], size) = ([x.shape()[0], x.shape()[1]], w.shape()[1]);
        let (xs, w) = (f32s(&x), taps_first(f32s(&w), size));
        assert!(rows == packed.rows() && w.len() == size * channels && xs.len() == rows * channels);
        let mut y = uninit(xs.len());
        let out = Out(y.as_mut_ptr().cast());
        for_each(packed, channels, |tree, block| {
            for segment in &packed.trees[tree] {
                for row in segment.rows.clone() {
                    // SAFETY: a row is in one segment, and each of its blocks is one task's.
                    unsafe { out.zeroed(row * channels + block.start, block.len()) };
                }
                segment.taps(size, |row, tap, from| {
                    // SAFETY: as above; the elements were written by this task.
                    let y = unsafe { std::slice::from_raw_parts_mut(out.at(row * channels + block.start), block.len()) };
                    let at = |row: usize| row * channels + block.start..row * channels + block.end;
                    add_products(&w[at(tap)], &xs[at(from)], y);
                });
            }
        });
        // SAFETY: every row is in one segment, and every block of its channels was written.
        from_vec(unsafe { written(y) }, x.shape())
    }

    fn conv_bwd(x: FlexTensor, w: FlexTensor, dy: FlexTensor, packed: &Packed) -> [FlexTensor; 2] {
        let [x, w, dy] = [x, w, dy].map(dense);
        let (channels, size, trees) = (x.shape()[1], w.shape()[1], packed.trees.len());
        let (xs, ws, dys) = (f32s(&x), taps_first(f32s(&w), size), f32s(&dy));
        assert!(xs.len() == packed.rows() * channels && ws.len() == size * channels && dys.len() == xs.len());
        let (mut dx, mut parts) = (vec![0.0; xs.len()], vec![0.0; trees * size * channels]);
        let (to_x, to_w) = (Out(dx.as_mut_ptr()), Out(parts.as_mut_ptr()));
        for_each(packed, channels, |tree, block| {
            let at = |row: usize| row * channels + block.start..row * channels + block.end;
            for segment in &packed.trees[tree] {
                segment.taps(size, |row, tap, from| {
                    // SAFETY: the rows of a tree, and its part of the sums, are used by its tasks only, each its own channels.
                    let (dx, dw) = unsafe {
                        let slice = |out: Out, row: usize| std::slice::from_raw_parts_mut(out.at(at(row).start), block.len());
                        (slice(to_x, from), slice(to_w, tree * size + tap))
                    };
                    add_products(&ws[at(tap)], &dys[at(row)], dx);
                    add_products(&xs[at(from)], &dys[at(row)], dw);
                });
            }
        });
        let mut dw = vec![0.0; size * channels];
        for part in parts.chunks_exact(size * channels) {
            (0..size * channels).for_each(|i| dw[i % channels * size + i / channels] += part[i]);
        }
        [from_vec(dx, x.shape()), from_vec(dw, Shape::from([channels, size]))]
    }
}

#[backend_extension(Flex, Autodiff)]
pub(crate) trait ConvOp: Backend {
    fn causal_conv(x: FloatTensor<Self>, w: FloatTensor<Self>, packed: Arc<Packed>) -> FloatTensor<Self>;
}

impl ConvOp for Flex {
    fn causal_conv(x: FlexTensor, w: FlexTensor, packed: Arc<Packed>) -> FlexTensor {
        Self::conv_fwd(x, w, &packed)
    }
}

impl<B: ConvKernels, C: CheckpointStrategy> ConvOp for Autodiff<B, C> {
    fn causal_conv(x: FloatTensor<Self>, w: FloatTensor<Self>, packed: Arc<Packed>) -> FloatTensor<Self> {
        let forward = |[x, w]: [_; 2], packed: &Arc<Packed>| B::conv_fwd(x, w, packed);
        simple::<B, C, _, 2, 2>([x, w], packed, forward, |[x, w], packed, dy| B::conv_bwd(x, w, dy, &packed))
    }
}

/// The rows that one tap reads: the index of a row for each row, and 0 for rows without such a token, else 1, [rows, 1].
struct Tap {
    rows: Vec<usize>,
    present: Vec<f32>,
}

pub(super) fn composed(x: Tensor<2>, w: Tensor<2>, packed: &Packed) -> Tensor<2> {
    let ([rows, channels], [_, size], device, dtype) = (x.dims(), w.dims(), x.device(), x.dtype());
    let mut taps: Vec<Tap> = (0..size).map(|_| Tap { rows: vec![0; rows], present: vec![0.0; rows] }).collect();
    for segment in packed.segments() {
        segment.taps(size, |row, tap, from| (taps[tap].rows[row], taps[tap].present[row]) = (from, 1.0));
    }
    let products = taps.into_iter().enumerate().map(|(j, Tap { rows: from, present })| {
        let present: Tensor<2> = tensor_from_vec(present, [rows, 1], &device).cast(dtype);
        let w = w.clone().narrow(1, j, 1).reshape([1, channels]);
        x.clone().select(0, index(from.into_iter(), &device)) * present * w
    });
    products.reduce(|sum, product| sum + product).expect("a kernel has at least one tap")
}

/// True if x is an f32 tensor of burn's CPU backend, tracked or not.
pub(super) fn on_cpu<const D: usize>(x: &Tensor<D>) -> bool {
    let x = if x.is_autodiff() { x.clone().inner() } else { x.clone() };
    x.dtype() == burn::tensor::DType::F32 && x.try_into_primitive::<Flex>().is_ok()
}

/// Convolves x [rows, channels] with w [channels, k] along each sequence -> [rows, channels].
///
/// # Panics
/// If x does not have the rows of `packed`.
pub(crate) fn causal_conv(x: Tensor<2>, w: Tensor<2>, packed: &Arc<Packed>) -> Tensor<2> {
    assert_eq!((x.dims()[0], x.dims()[1]), (packed.rows(), w.dims()[0]), "rows and channels of a convolution");
    if !on_cpu(&x) {
        return composed(x, w, packed);
    }
    Tensor::from_dispatch(Dispatch::causal_conv(x.into_dispatch(), w.into_dispatch(), packed.clone()))
}

/// The last inputs of each tree's stem, oldest first, [trees, (k − 1) · channels]; 0 before the first token.
pub(crate) fn conv_tails(x: &Tensor<2>, size: usize, packed: &Packed) -> Tensor<2> {
    let ([_, channels], device, trees) = (x.dims(), x.device(), packed.trees.len());
    let (mut rows, mut present) = (Vec::new(), Vec::new());
    for stem in packed.trees.iter().map(|tree| &tree[0].rows) {
        for back in (1..size).rev() {
            let is_there = back <= stem.len();
            rows.push(if is_there { stem.end - back } else { stem.start });
            present.push(if is_there { 1.0 } else { 0.0 });
        }
    }
    let present: Tensor<2> = tensor_from_vec(present, [trees * (size - 1), 1], &device).cast(x.dtype());
    (x.clone().select(0, index(rows.into_iter(), &device)) * present).reshape([trees, (size - 1) * channels])
}
