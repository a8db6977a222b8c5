//! CPU kernels of causal attention. One task per (batch, kv head); per block of query rows a score block [rows, keys] that
//! stays in cache. Tasks write disjoint heads of shared buffers, which is what the raw pointers are for.

use gemm::Parallelism::None as OneThread;
use rayon::prelude::*;

use super::flex::{matmul_ptr as mm, uninit};
use super::simd;

#[derive(Clone, Copy, Debug)]
pub struct Dims {
    pub b: usize,
    /// Query length; the queries are the last `sq` positions of `sk`.
    pub sq: usize,
    pub sk: usize,
    pub hq: usize,
    pub hkv: usize,
    pub d: usize,
}

/// Query rows per block.
const ROWS: usize = 64;

/// A buffer that tasks write at disjoint places.
#[derive(Clone, Copy)]
pub(super) struct Out(pub *mut f32);
// SAFETY: each task writes only the rows of its own (batch, head); the buffer outlives the parallel loop.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Sync for Out {}
impl Out {
    pub(super) fn at(self, i: usize) -> *mut f32 {
        self.0.wrapping_add(i)
    }
}

impl Dims {
    fn check(&self, q: usize, k: usize, v: usize) {
        assert!(self.hq.is_multiple_of(self.hkv) && self.sk >= self.sq, "{self:?}");
        assert_eq!(q, self.b * self.sq * self.hq * self.d);
        assert_eq!((k, v), (self.b * self.sk * self.hkv * self.d, self.b * self.sk * self.hkv * self.d));
    }
    fn q_at(&self, b: usize, i: usize, h: usize) -> usize {
        ((b * self.sq + i) * self.hq + h) * self.d
    }
    fn kv_at(&self, b: usize, h: usize) -> usize {
        (b * self.sk * self.hkv + h) * self.d
    }
}

/// The output, and per (batch, head, query) the log-sum-exp of the scaled scores.
pub fn forward(q: &[f32], k: &[f32], v: &[f32], s: Dims) -> (Vec<f32>, Vec<f32>) {
    s.check(q.len(), k.len(), v.len());
    let (d, group) = (s.d, s.hq / s.hkv);
    let (qs, ks) = (s.hq * d, s.hkv * d);
    let scale = 1.0 / (d as f32).sqrt();
    let (mut out, mut lse) = (uninit(q.len()), uninit(s.b * s.hq * s.sq));
    let (p_out, p_lse) = (Out(out.as_mut_ptr()), Out(lse.as_mut_ptr()));
    (0..s.b * s.hkv).into_par_iter().for_each_init(
        || uninit(ROWS.min(s.sq) * s.sk),
        |scores, task| {
            let (b, hk) = (task / s.hkv, task % s.hkv);
            let (k0, v0) = (k[s.kv_at(b, hk)..].as_ptr(), v[s.kv_at(b, hk)..].as_ptr());
            for h in hk * group..(hk + 1) * group {
                for i0 in (0..s.sq).step_by(ROWS) {
                    let n = ROWS.min(s.sq - i0);
                    let end = s.sk - s.sq + i0 + n; // keys seen by the last row of the block
                    let q0 = q[s.q_at(b, i0, h)..].as_ptr();
                    // SAFETY: shapes and strides are those `check` verified; `scores` holds ROWS × sk.
                    unsafe { mm((n, end, d), scores.as_mut_ptr(), (end, 1), false, q0, (qs, 1), k0, (1, ks), OneThread) };
                    for (i, row) in scores.chunks_exact_mut(end).take(n).enumerate() {
                        let (row, unseen) = row.split_at_mut(end - n + i + 1);
                        let m = simd::max_row(row) * scale;
                        let sum = simd::exp_sub_sum(row, scale, m);
                        simd::scale(1.0 / sum, row);
                        unseen.fill(0.0);
                        // SAFETY: inside `lse`, and this (batch, head) is this task's alone.
                        unsafe { *p_lse.at((b * s.hq + h) * s.sq + i0 + i) = m + sum.ln() };
                    }
                    let o = p_out.at(s.q_at(b, i0, h));
                    // SAFETY: as above; the rows of head h of batch b are this task's alone.
                    unsafe { mm((n, d, end), o, (qs, 1), false, scores.as_ptr(), (end, 1), v0, (ks, 1), OneThread) };
                }
            }
        },
    );
    (out, lse)
}

/// Gradients of q, k and v; `out` and `lse` as [`forward`] returned them.
pub fn backward([q, k, v]: [&[f32]; 3], out: &[f32], lse: &[f32], dy: &[f32], s: Dims) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    s.check(q.len(), k.len(), v.len());
    assert_eq!((out.len(), dy.len(), lse.len()), (q.len(), q.len(), s.b * s.hq * s.sq));
    let (d, group) = (s.d, s.hq / s.hkv);
    let (qs, ks) = (s.hq * d, s.hkv * d);
    let scale = 1.0 / (d as f32).sqrt();
    let (mut dq, mut dk, mut dv) = (uninit(q.len()), vec![0f32; k.len()], vec![0f32; v.len()]);
    let (p_dq, p_dk, p_dv) = (Out(dq.as_mut_ptr()), Out(dk.as_mut_ptr()), Out(dv.as_mut_ptr()));
    (0..s.b * s.hkv).into_par_iter().for_each_init(
        || uninit(2 * ROWS.min(s.sq) * s.sk),
        |buffer, task| {
            let (b, hk) = (task / s.hkv, task % s.hkv);
            let (p, dp) = buffer.split_at_mut(ROWS.min(s.sq) * s.sk);
            let kv = s.kv_at(b, hk);
            let (k0, v0) = (k[kv..].as_ptr(), v[kv..].as_ptr());
            for h in hk * group..(hk + 1) * group {
                for i0 in (0..s.sq).step_by(ROWS) {
                    let n = ROWS.min(s.sq - i0);
                    let end = s.sk - s.sq + i0 + n;
                    let at = s.q_at(b, i0, h);
                    let (q0, dy0) = (q[at..].as_ptr(), dy[at..].as_ptr());
                    // SAFETY: shapes and strides are those `check` verified; p and dp hold ROWS × sk each.
                    unsafe {
                        mm((n, end, d), p.as_mut_ptr(), (end, 1), false, q0, (qs, 1), k0, (1, ks), OneThread);
                        mm((n, end, d), dp.as_mut_ptr(), (end, 1), false, dy0, (qs, 1), v0, (1, ks), OneThread);
                    }
                    for (i, (p, dp)) in p.chunks_exact_mut(end).zip(dp.chunks_exact_mut(end)).take(n).enumerate() {
                        let seen = end - n + i + 1;
                        let r = at + i * qs;
                        let delta = simd::dot(&out[r..r + d], &dy[r..r + d]);
                        simd::probs_row(&mut p[..seen], scale, lse[(b * s.hq + h) * s.sq + i0 + i]);
                        p[seen..].fill(0.0);
                        simd::dscores_row(&p[..seen], &mut dp[..seen], delta, scale);
                        dp[seen..].fill(0.0);
                    }
                    // SAFETY: head h of dq and kv head hk of dk and dv belong to this task alone.
                    unsafe {
                        mm((n, d, end), p_dq.at(at), (qs, 1), false, dp.as_ptr(), (end, 1), k0, (ks, 1), OneThread);
                        mm((end, d, n), p_dk.at(kv), (ks, 1), true, dp.as_ptr(), (1, end), q0, (qs, 1), OneThread);
                        mm((end, d, n), p_dv.at(kv), (ks, 1), true, p.as_ptr(), (1, end), dy0, (qs, 1), OneThread);
                    }
                }
            }
        },
    );
    (dq, dk, dv)
}
