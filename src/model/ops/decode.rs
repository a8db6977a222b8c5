//! Attention of one new position per sequence over its own part of a shared key/value cache (inference only). Every
//! sequence sees its own length, so its result does not depend on its neighbours in the batch.

use burn::tensor::{Int, Tensor, TensorData, activation};
use gemm::Parallelism::None as OneThread;
use rayon::prelude::*;

use super::attention_flex::Out;
use super::flex::{f32s, flex_f32, matmul_ptr as mm, tensor_from_vec, uninit};
use super::simd;

/// Where the sequences of a decode step lie in a cache of [slots · capacity, kv heads · d].
#[derive(Clone, Copy)]
pub struct CacheView<'a> {
    pub capacity: usize,
    pub kv_heads: usize,
    /// Slot of each row of the step.
    pub slots: &'a [usize],
    /// Positions filled in each row's slot, the new one included.
    pub lens: &'a [usize],
}

/// q [rows, heads, d] over k and v [slots · capacity, kv heads · d] -> [rows, heads, d].
pub fn decode_attention(q: Tensor<3>, k: &Tensor<2>, v: &Tensor<2>, at: CacheView) -> Tensor<3> {
    match (flex_f32(&q), flex_f32(k), flex_f32(v)) {
        (Some(qs), Some(ks), Some(vs)) => {
            let [rows, heads, d] = q.dims();
            let out = flex(f32s(&qs), f32s(&ks), f32s(&vs), at, [rows, heads, d]);
            tensor_from_vec(out, [rows, heads, d], &q.device())
        }
        _ => composed(q, k, v, at),
    }
}

fn flex(q: &[f32], k: &[f32], v: &[f32], at: CacheView, [rows, heads, d]: [usize; 3]) -> Vec<f32> {
    let (group, stride) = (heads / at.kv_heads, at.kv_heads * d);
    let scale = 1.0 / (d as f32).sqrt();
    for (slot, len) in at.slots.iter().zip(at.lens) {
        assert!(*len > 0 && *len <= at.capacity && (slot + 1) * at.capacity * stride <= k.len().min(v.len()));
    }
    assert!(at.slots.len() == rows && at.lens.len() == rows && q.len() == rows * heads * d);
    let mut out = uninit(q.len());
    let p_out = Out(out.as_mut_ptr());
    (0..rows * at.kv_heads).into_par_iter().for_each_init(Vec::new, |scores: &mut Vec<f32>, task| {
        let (row, hk) = (task / at.kv_heads, task % at.kv_heads);
        let len = at.lens[row];
        scores.resize(group * len, 0.0);
        let kv = at.slots[row] * at.capacity * stride + hk * d;
        let first = (row * heads + hk * group) * d;
        let (k0, v0) = (k[kv..].as_ptr(), v[kv..].as_ptr());
        // SAFETY: slots and lens were checked above; the heads of one (row, kv head) are this task's alone.
        unsafe {
            mm((group, len, d), scores.as_mut_ptr(), (len, 1), false, q[first..].as_ptr(), (d, 1), k0, (1, stride), OneThread)
        };
        for row in scores.chunks_exact_mut(len) {
            let m = simd::max_row(row) * scale;
            let sum = simd::exp_sub_sum(row, scale, m);
            simd::scale(1.0 / sum, row);
        }
        // SAFETY: as above.
        unsafe { mm((group, d, len), p_out.at(first), (d, 1), false, scores.as_ptr(), (len, 1), v0, (stride, 1), OneThread) };
    });
    out
}

fn composed(q: Tensor<3>, k: &Tensor<2>, v: &Tensor<2>, at: CacheView) -> Tensor<3> {
    let ([rows, heads, d], device) = (q.dims(), q.device());
    let longest = at.lens.iter().copied().max().unwrap_or(1);
    let index: Vec<i64> = at.slots.iter().flat_map(|s| (0..longest).map(move |p| (s * at.capacity + p) as i64)).collect();
    let index = Tensor::<1, Int>::from_data(TensorData::new(index, [rows * longest]), &device);
    // [rows, kv heads, keys, d]
    let gather = |x: &Tensor<2>| x.clone().select(0, index.clone()).reshape([rows, longest, at.kv_heads, d]).swap_dims(1, 2);
    let unseen: Vec<f32> = at.lens.iter().flat_map(|len| (0..longest).map(move |p| if p < *len { 0.0 } else { -1e30 })).collect();
    let unseen = tensor_from_vec(unseen, [rows, 1, 1, longest], &device);
    let unseen = unseen.cast(q.dtype());
    let q = q.reshape([rows, at.kv_heads, heads / at.kv_heads, d]);
    let scores = q.matmul(gather(k).swap_dims(2, 3)).mul_scalar(1.0 / (d as f64).sqrt()) + unseen;
    activation::softmax(scores, 3).matmul(gather(v)).reshape([rows, heads, d])
}
