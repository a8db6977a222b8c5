//! Attention of packed sequences from ordinary tensor operations, as CUDA runs it. The operands are gathered into the padded
//! layout of `attention_blocks.rs`. Each range of queries is then multiplied with the keys that it sees. So the scores of a long
//! sequence are never held all at once, and few masked scores are computed: those within the queries' own range.

use burn::backend::{TensorMetadata, ops::AttentionModuleOptions, tensor::*};
use burn::tensor::{DType, Shape};

use super::attention_blocks::Blocks;
use super::attention_scores::{ScoreKernels, ScoredRange};
use super::autodiff::wide;
use super::packed::Pattern;

/// Blocks of queries and keys are padded to multiples of this. Kernels that read several values at once then fit every layout and
/// need not be compiled again for the next one.
const STEP: usize = 16;
/// Blocks are padded to multiples of this for the backend's fused attention, whose kernels process this many queries at once.
const FUSED_STEP: usize = 128;
/// Queries of a segment whose scores are held at once, a multiple of the padding step. The scores of 14 heads and 16,384 keys
/// then take 448 MiB in f32 instead of 14 GiB, and the matmuls are still large. Shorter segments are one range.
pub const QUERIES: usize = 512;
const _: () = assert!(QUERIES.is_multiple_of(STEP));

/// Returns the output, and the log-sum-exp of the scores [rows, heads].
pub(super) fn forward<B: ScoreKernels>([q, k, v]: [FloatTensor<B>; 3], pattern: &Pattern) -> (FloatTensor<B>, FloatTensor<B>) {
    let (rows, heads, kv_heads) = (q.shape()[0], q.shape()[1], k.shape()[1]);
    let blocks = Blocks::<B>::cached(&pattern.packed, &q.device(), STEP, QUERIES);
    let [k, v] = [k, v].map(|x| B::pad(x, &blocks.key_rows, [blocks.segments, kv_heads]));
    let parts = ScoredRange::each(&blocks, pattern).map(|range| {
        let (queries, keys) = (range.queries(), range.keys());
        let [k, v] = [&k, &v].map(|x| blocks.some_keys(x, queries.segments, &keys));
        let q = B::pad(q.clone(), &queries.rows, [queries.segments, kv_heads]);
        let products = B::float_matmul(q, B::float_transpose(k));
        let [p, lse] = B::probabilities(products, &range);
        (B::float_matmul(p, v), lse)
    });
    let (out, lse) = parts.unzip();
    (B::unpad(out, &blocks), B::float_reshape(B::unpad(lse, &blocks), Shape::from([rows, heads])))
}

/// Computes [`forward`] without the log-sum-exp. Uses the backend's fused attention if it supports the pattern, but not in f32:
/// on CUDA it multiplies in f16 for every dtype.
pub(super) fn output<B: ScoreKernels>(qkv: [FloatTensor<B>; 3], pattern: &Pattern) -> FloatTensor<B> {
    let (s, heads, d) = (pattern.scoring, qkv[0].shape()[1], qkv[0].shape()[2]);
    let plain = s.softcap.is_none() && s.window.is_none() && s.scale == 1.0 / (d as f32).sqrt();
    if !plain || qkv[0].dtype() == DType::F32 || pattern.packed.segments().any(|s| !s.stem.is_empty()) {
        return forward::<B>(qkv, pattern).0;
    }
    let blocks = Blocks::<B>::cached(&pattern.packed, &qkv[0].device(), FUSED_STEP, usize::MAX);
    // Padding follows a sequence, where causal queries do not look.
    let [q, k, v] = qkv.map(|x| {
        let (kv_heads, shape) = (x.shape()[1], Shape::from([blocks.segments, heads, blocks.keys, d]));
        let x = B::pad(x, &blocks.key_rows, [blocks.segments, kv_heads]);
        let x = B::float_reshape(x, Shape::from([blocks.segments, kv_heads, 1, blocks.keys, d]));
        let repeated = Shape::from([blocks.segments, kv_heads, heads / kv_heads, blocks.keys, d]);
        B::float_reshape(B::float_expand(x, repeated), shape)
    });
    let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
    B::unpad(vec![B::attention(q, k, v, None, None, options)], &blocks)
}

/// Returns the gradients of q, k and v; `out` and `lse` are the results of [`forward`]. The gradients of keys and values are
/// added range by range, in order.
pub(super) fn backward<B: ScoreKernels>(
    [q, k, v]: [FloatTensor<B>; 3],
    out: FloatTensor<B>,
    lse: FloatTensor<B>,
    dy: FloatTensor<B>,
    pattern: &Pattern,
) -> [FloatTensor<B>; 3] {
    let (kv_heads, [rows, heads]) = (k.shape()[1], [lse.shape()[0], lse.shape()[1]]);
    let dtypes = [k.dtype(), v.dtype()];
    let blocks = Blocks::<B>::cached(&pattern.packed, &q.device(), STEP, QUERIES);
    let delta = B::float_sum_dim(B::float_mul(wide::<B>(out), wide::<B>(dy.clone())), 2);
    let [lse, delta] = [lse, delta].map(|x| B::float_reshape(x, Shape::from([rows, heads, 1])));
    let [k, v] = [k, v].map(|x| B::pad(x, &blocks.key_rows, [blocks.segments, kv_heads]));
    let (mut dq, mut sums) = (Vec::new(), [None, None]);
    for range in ScoredRange::each(&blocks, pattern) {
        let (queries, keys) = (range.queries(), range.keys());
        let padded = |x: &FloatTensor<B>| B::pad(x.clone(), &queries.rows, [queries.segments, kv_heads]);
        let [q, dy, lse, delta] = [&q, &dy, &lse, &delta].map(padded);
        let [k, v] = [&k, &v].map(|x| blocks.some_keys(x, queries.segments, &keys));
        let products = B::float_matmul(q.clone(), B::float_transpose(k.clone()));
        let dp = B::float_matmul(dy.clone(), B::float_transpose(v));
        let [p, ds] = B::gradients(products, dp, lse, delta, &range);
        let dv = B::float_matmul(B::float_transpose(p), dy);
        dq.push(B::float_matmul(ds.clone(), k));
        let dk = B::float_matmul(B::float_transpose(ds), q);
        let [k_sum, v_sum] = sums;
        sums = [(k_sum, dk), (v_sum, dv)].map(|(sum, x)| Some(blocks.add_keys(sum, x, queries.segments, &keys)));
    }
    let dq = B::unpad(dq, &blocks);
    let [dk, dv] = sums.map(|sum| sum.expect("a layout has at least one range"));
    [dq, B::sum_of_keys(dk, &blocks, dtypes[0]), B::sum_of_keys(dv, &blocks, dtypes[1])]
}
