//! The steps between attention's matmuls, from ordinary tensor operations: the mask, the scores, their softmax and its gradient.
//! The GPU kernels are in `cube/attention.rs`.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::{Backend, Flex, TensorMetadata, get_or_init_device_settings, tensor::*};
use burn::tensor::{DType, Shape};

use super::attention_blocks::{Blocks, Queries, int, pad};
use super::autodiff::wide;
use super::packed::{AttentionScoring, Packed, Pattern};

/// The steps of attention around its matmuls: gather rows into the padded layout and back, and turn products q·kᵀ into
/// probabilities.
pub(crate) trait ScoreKernels: Backend {
    /// See [`pad`].
    fn pad(x: FloatTensor<Self>, rows: &IntTensor<Self>, sizes: [usize; 2]) -> FloatTensor<Self> {
        pad::<Self>(x, rows, sizes)
    }
    /// See [`Blocks::rows`].
    fn unpad(parts: Vec<FloatTensor<Self>>, blocks: &Blocks<Self>) -> FloatTensor<Self> {
        blocks.rows(parts)
    }
    /// See [`Blocks::sum_of_keys`].
    fn sum_of_keys(x: FloatTensor<Self>, blocks: &Blocks<Self>, dtype: DType) -> FloatTensor<Self> {
        blocks.sum_of_keys(x, dtype)
    }
    /// See [`probabilities`].
    fn probabilities(products: FloatTensor<Self>, range: &ScoredRange<Self>) -> [FloatTensor<Self>; 2] {
        probabilities::<Self>(products, range)
    }
    /// See [`gradients`].
    fn gradients(
        products: FloatTensor<Self>,
        dp: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        delta: FloatTensor<Self>,
        range: &ScoredRange<Self>,
    ) -> [FloatTensor<Self>; 2] {
        gradients::<Self>(products, dp, lse, delta, range)
    }
}

impl ScoreKernels for Flex {}

/// The information that turns the products q·kᵀ of a range of queries, [segments, kv heads, group · queries, keys], into scores:
/// mask and scoring.
pub(crate) struct ScoredRange<B: Backend> {
    blocks: Arc<Blocks<B>>,
    pattern: Pattern,
    /// The index of the range.
    number: usize,
    keys: Range<usize>,
}

impl<B: Backend> ScoredRange<B> {
    /// Iterates over the ranges of queries.
    pub(crate) fn each(blocks: &Arc<Blocks<B>>, pattern: &Pattern) -> impl Iterator<Item = Self> {
        blocks.ranges.iter().enumerate().map(|(number, queries)| Self {
            blocks: blocks.clone(),
            pattern: pattern.clone(),
            number,
            keys: queries.keys(pattern.scoring.window),
        })
    }

    pub(crate) fn scoring(&self) -> AttentionScoring {
        self.pattern.scoring
    }

    pub(crate) fn queries(&self) -> &Queries<B> {
        &self.blocks.ranges[self.number]
    }

    /// The positions of the keys.
    pub(crate) fn keys(&self) -> Range<usize> {
        self.keys.clone()
    }

    /// The scores, f32, with −1e30 for masked keys; with a soft cap also tanh(score / cap) before the mask.
    fn scores(&self, products: FloatTensor<B>) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
        let (queries, scoring) = (self.queries(), self.scoring());
        let scores = B::float_mul_scalar(wide::<B>(products), scoring.scale.into());
        let tanh = scoring.softcap.map(|cap| B::float_tanh(B::float_div_scalar(scores.clone(), cap.into())));
        let scores = match (&tanh, scoring.softcap) {
            (Some(tanh), Some(cap)) => B::float_mul_scalar(tanh.clone(), cap.into()),
            _ => scores,
        };
        let (flat, n) = (scores.shape(), queries.range.len());
        let shape = Shape::from([queries.segments, flat[1], flat[2] / n, n, self.keys.len()]);
        let unseen = B::bool_expand(CachedMask::get(&self.pattern.packed, self), shape.clone());
        let scores = B::float_mask_fill(B::float_reshape(scores, shape), unseen, (-1e30).into());
        (B::float_reshape(scores, flat), tanh)
    }

    /// The mask [segments, 1, 1, queries, keys]: true if a query does not see a key.
    fn mask(&self) -> BoolTensor<B> {
        let (queries, device) = (self.queries(), &self.blocks.device);
        let out = get_or_init_device_settings::<B>(device).bool_dtype;
        let q = B::int_reshape(queries.positions.clone(), Shape::from([queries.segments, 1, 1, queries.range.len(), 1]));
        let k = int::<B>(self.keys.clone().map(|key| key as i64), device);
        let k = B::int_reshape(k, Shape::from([1, 1, 1, 1, self.keys.len()]));
        let later = B::int_lower(q.clone(), k.clone(), out);
        match self.scoring().window {
            Some(window) => {
                let reach = B::int_sub_scalar(q, (window as i64).into());
                B::bool_or(later, B::int_lower_equal(k, reach, out))
            }
            None => later,
        }
    }
}

/// A cached [`ScoredRange::mask`] for a window and a range.
struct CachedMask<B: Backend> {
    device: B::Device,
    window: Option<usize>,
    range: Range<usize>,
    mask: BoolTensor<B>,
}

impl<B: Backend> CachedMask<B> {
    fn get(packed: &Packed, scores: &ScoredRange<B>) -> BoolTensor<B> {
        let (device, window, range) = (&scores.blocks.device, scores.scoring().window, &scores.queries().range);
        let make = || Self { device: device.clone(), window, range: range.clone(), mask: scores.mask() };
        let fits = |x: &Self| x.window == window && x.range == *range && x.device == *device;
        packed.prepared.get(fits, make).mask.clone()
    }
}

/// The softmax of the scores of `products`, in their dtype, and the log-sum-exp of each row, f32 [segments, kv heads, group ·
/// queries, 1].
pub(super) fn probabilities<B: Backend>(products: FloatTensor<B>, range: &ScoredRange<B>) -> [FloatTensor<B>; 2] {
    let dtype = products.dtype();
    let (scores, _) = range.scores(products);
    let max = B::float_max_dim(scores.clone(), 3);
    let e = B::float_exp(B::float_sub(scores, max.clone()));
    let sum = B::float_sum_dim(e.clone(), 3);
    [B::float_cast(B::float_div(e, sum.clone()), dtype.into()), B::float_add(max, B::float_log(sum))]
}

/// Recomputes the softmax p from the log-sum-exp of each row, and returns p and the gradient of the products. `dp` is the
/// gradient of p; `delta` is the sum of dp·p over each row. Both results have the dtype of the products.
pub(super) fn gradients<B: Backend>(
    products: FloatTensor<B>,
    dp: FloatTensor<B>,
    lse: FloatTensor<B>,
    delta: FloatTensor<B>,
    range: &ScoredRange<B>,
) -> [FloatTensor<B>; 2] {
    let dtype = products.dtype();
    let (scores, tanh) = range.scores(products);
    let p = B::float_exp(B::float_sub(scores, lse));
    let dp = B::float_sub(wide::<B>(dp), delta);
    let ds = B::float_mul_scalar(B::float_mul(p.clone(), dp), range.scoring().scale.into());
    let ds = match tanh {
        Some(tanh) => B::float_sub(ds.clone(), B::float_mul(ds, B::float_mul(tanh.clone(), tanh))),
        None => ds,
    };
    [p, ds].map(|x| B::float_cast(x, dtype.into()))
}
