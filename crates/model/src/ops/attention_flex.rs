//! CPU kernels of causal attention over packed rows. A forward task computes one kv head of a segment; a backward task computes
//! one kv head of a whole tree, where the contributions of the branches to a shared stem are added in order. Queries are
//! processed in blocks, with the rows of all heads of a group stacked, so that the scores of a block [queries · group, keys] stay
//! in cache. Tasks write disjoint heads of shared buffers through raw pointers.

use std::ops::Range;

use gemm::Parallelism::None as OneThread;
use rayon::prelude::*;

use super::flex::{matmul_ptr as mm, uninit, written};
use super::packed::{AttentionScoring, Pattern, Segment};
use super::simd;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims {
    pub heads: usize,
    pub kv_heads: usize,
    pub d: usize,
}

/// Limits of a block, in query positions and in scores: a block and its gradient fit a core's cache.
const POSITIONS: usize = 64;
const SCORES: usize = 128 * 1024;

/// A buffer whose disjoint parts are written by tasks.
#[derive(Clone, Copy)]
pub(super) struct Out(pub *mut f32);
// SAFETY: each task writes only its own rows and heads; the buffer outlives the parallel loop.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Sync for Out {}
impl Out {
    pub(super) fn at(self, i: usize) -> *mut f32 {
        self.0.wrapping_add(i)
    }

    /// Sets elements to 0, and returns them.
    ///
    /// # Safety
    /// The elements must be within the buffer, and no other code may access them meanwhile.
    pub(super) unsafe fn zeroed<'a>(self, at: usize, len: usize) -> &'a mut [f32] {
        // SAFETY: promised by the caller; the elements are written before the slice is made.
        unsafe {
            self.at(at).write_bytes(0, len);
            std::slice::from_raw_parts_mut(self.at(at), len)
        }
    }
}

/// Consecutive queries of a segment, with all keys that any of them sees. Keys are counted by position: first the stem's, then
/// the segment's own.
struct Block<'a> {
    segment: &'a Segment,
    /// The row of the first query; `position` is its position in the sequence.
    row: usize,
    position: usize,
    queries: usize,
    keys: Range<usize>,
}

/// Keys of a block in consecutive rows; `column` is the first one's column in the block.
struct Part {
    row: usize,
    column: usize,
    len: usize,
}

fn blocks<'a>(segment: &'a Segment, scoring: &AttentionScoring, group: usize) -> impl Iterator<Item = Block<'a>> {
    let window = scoring.window;
    let max_keys = segment.keys().min(window.map_or(usize::MAX, |w| w + POSITIONS));
    let step = (SCORES / (group * max_keys.max(1))).clamp(8, POSITIONS);
    (0..segment.rows.len()).step_by(step).map(move |first| {
        let queries = step.min(segment.rows.len() - first);
        let position = segment.stem.len() + first;
        let keys = window.map_or(0, |w| (position + 1).saturating_sub(w))..position + queries;
        Block { segment, row: segment.rows.start + first, position, queries, keys }
    })
}

impl Block<'_> {
    /// The columns that query `i` sees.
    fn visible_keys(&self, i: usize, scoring: &AttentionScoring) -> Range<usize> {
        let end = self.position + i + 1;
        let first = scoring.window.map_or(0, |w| end.saturating_sub(w));
        first - self.keys.start.min(first)..end - self.keys.start
    }

    /// The segment's own keys (at least one), then the keys of the stem, if any.
    fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let (stem, keys) = (&self.segment.stem, &self.keys);
        let own = keys.start.max(stem.len());
        let shared = stem.len().saturating_sub(keys.start);
        let own = Part { row: self.segment.rows.start + own - stem.len(), column: own - keys.start, len: keys.end - own };
        let stem = Part { row: stem.start + keys.start, column: 0, len: shared };
        std::iter::once(own).chain((shared > 0).then_some(stem))
    }
}

/// Runs `task` on each group of segments and each kv head, the largest first, so that the last tasks are short.
fn for_each<'a>(
    groups: impl Iterator<Item = &'a [Segment]>,
    kv_heads: usize,
    task: impl Fn(&'a [Segment], usize, &mut Scratch) + Sync,
) {
    let work = |group: &[Segment]| group.iter().map(|s| s.rows.len() * s.keys()).sum::<usize>();
    let mut tasks: Vec<_> = groups.flat_map(|group| (0..kv_heads).map(move |head| (group, head))).collect();
    tasks.sort_by_key(|(group, _)| std::cmp::Reverse(work(group)));
    tasks.into_iter().par_bridge().for_each_init(Scratch::default, |scratch, (group, head)| task(group, head, scratch));
}

/// The buffers of one thread for a block: rows of q, of the output's gradient and of a result, [queries · group, d]; scores and
/// their gradients, [queries · group, keys].
#[derive(Default)]
struct Scratch {
    q: Vec<f32>,
    dy: Vec<f32>,
    out: Vec<f32>,
    scores: Vec<f32>,
    dscores: Vec<f32>,
    numbers: Vec<f32>,
}

/// Returns the first n elements of the buffer, with unspecified contents.
fn first(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        *buffer = vec![0.0; n];
    }
    &mut buffer[..n]
}

impl Dims {
    /// The number of elements of a row of q, and of a row of k.
    fn widths(self) -> (usize, usize) {
        (self.heads * self.d, self.kv_heads * self.d)
    }

    fn check(self, [q, k, v]: [&[f32]; 3], pattern: &Pattern) {
        let (rows, (q_width, k_width)) = (pattern.packed.rows(), self.widths());
        assert!(self.heads.is_multiple_of(self.kv_heads), "{self:?}");
        assert_eq!((q.len(), k.len(), v.len()), (rows * q_width, rows * k_width, rows * k_width));
        assert_eq!(pattern.packed.segments().map(|segment| segment.rows.len()).sum::<usize>(), rows);
    }
}

/// Returns the output and the log-sum-exp of the scores of each (row, head).
pub(super) fn forward(qkv: [&[f32]; 3], pattern: &Pattern, dims: Dims) -> (Vec<f32>, Vec<f32>) {
    dims.check(qkv, pattern);
    let ([q, k, v], scoring) = (qkv, &pattern.scoring);
    let (d, group, (q_width, k_width)) = (dims.d, dims.heads / dims.kv_heads, dims.widths());
    let (mut out, mut lse) = (uninit(q.len()), uninit(pattern.packed.rows() * dims.heads));
    let (p_out, p_lse) = (Out(out.as_mut_ptr().cast()), Out(lse.as_mut_ptr().cast()));
    let segments = pattern.packed.segments().map(std::slice::from_ref);
    for_each(segments, dims.kv_heads, |segments, head, scratch| {
        for block in segments.iter().flat_map(|s| blocks(s, scoring, group)) {
            let (n, width) = (block.queries * group, block.keys.len());
            let at = |i: usize| (block.row + i) * q_width + head * group * d;
            let (qs, scores) = (first(&mut scratch.q, n * d), first(&mut scratch.scores, n * width));
            for (i, qs) in qs.chunks_exact_mut(group * d).enumerate() {
                simd::scaled(scoring.scale, &q[at(i)..at(i) + group * d], qs);
            }
            for part in block.parts() {
                let keys = k[part.row * k_width + head * d..].as_ptr();
                let to = scores[part.column..].as_mut_ptr();
                // SAFETY: the rows of a part are rows of k, as `check` verified, and its columns are columns of the block.
                unsafe { mm((n, part.len, d), to, (width, 1), false, qs.as_ptr(), (d, 1), keys, (1, k_width), OneThread) };
            }
            let sums = first(&mut scratch.numbers, n);
            for (i, (row, sum)) in scores.chunks_exact_mut(width).zip(sums.iter_mut()).enumerate() {
                let seen = block.visible_keys(i / group, scoring);
                row[..seen.start].fill(0.0);
                row[seen.end..].fill(0.0);
                let row = &mut row[seen];
                if let Some(cap) = scoring.softcap {
                    simd::softcap(row, cap);
                }
                let max = simd::max_row(row);
                *sum = simd::exp_sub_sum(row, 1.0, max);
                let at = (block.row + i / group) * dims.heads + head * group + i % group;
                // SAFETY: the index is in bounds, and only this task uses this (row, head).
                unsafe { *p_lse.at(at) = max + sum.ln() };
            }
            let result = first(&mut scratch.out, n * d);
            for (i, part) in block.parts().enumerate() {
                let (p, values) = (scores[part.column..].as_ptr(), v[part.row * k_width + head * d..].as_ptr());
                let to = result.as_mut_ptr();
                // SAFETY: as above.
                unsafe { mm((n, d, part.len), to, (d, 1), i > 0, p, (width, 1), values, (k_width, 1), OneThread) };
            }
            for (i, (row, sum)) in result.chunks_exact(d).zip(sums.iter()).enumerate() {
                // SAFETY: the index is in bounds, and only this task uses this (row, head).
                simd::scaled(1.0 / sum, row, unsafe { p_out.zeroed(at(i / group) + i % group * d, d) });
            }
        }
    });
    // SAFETY: each row is in one segment, and the tasks have written every head of its rows.
    unsafe { (written(out), written(lse)) }
}

/// Returns the gradients of q, k and v; `out` and `lse` are the results of [`forward`].
pub(super) fn backward(qkv: [&[f32]; 3], out: &[f32], lse: &[f32], dy: &[f32], pattern: &Pattern, dims: Dims) -> [Vec<f32>; 3] {
    dims.check(qkv, pattern);
    let ([q, k, v], scoring) = (qkv, &pattern.scoring);
    assert_eq!((out.len(), dy.len(), lse.len()), (q.len(), q.len(), pattern.packed.rows() * dims.heads));
    let (d, group, (q_width, k_width)) = (dims.d, dims.heads / dims.kv_heads, dims.widths());
    let (mut dq, mut dk, mut dv) = (uninit(q.len()), vec![0f32; k.len()], vec![0f32; v.len()]);
    let (p_dq, p_dk, p_dv) = (Out(dq.as_mut_ptr().cast()), Out(dk.as_mut_ptr()), Out(dv.as_mut_ptr()));
    for_each(pattern.packed.trees.iter().map(Vec::as_slice), dims.kv_heads, |segments, head, scratch| {
        for block in segments.iter().flat_map(|s| blocks(s, scoring, group)) {
            let (n, width) = (block.queries * group, block.keys.len());
            let at = |i: usize| (block.row + i) * q_width + head * group * d;
            let (qs, dys) = (first(&mut scratch.q, n * d), first(&mut scratch.dy, n * d));
            let (p, dp) = (first(&mut scratch.scores, n * width), first(&mut scratch.dscores, n * width));
            for (i, (qs, dys)) in qs.chunks_exact_mut(group * d).zip(dys.chunks_exact_mut(group * d)).enumerate() {
                simd::scaled(scoring.scale, &q[at(i)..at(i) + group * d], qs);
                dys.copy_from_slice(&dy[at(i)..at(i) + group * d]);
            }
            for part in block.parts() {
                let from = part.row * k_width + head * d;
                let (keys, values, c) = (k[from..].as_ptr(), v[from..].as_ptr(), part.column);
                let (to, dto) = (p[c..].as_mut_ptr(), dp[c..].as_mut_ptr());
                // SAFETY: the rows of a part are rows of k and v, as `check` verified, and its columns are columns of the block.
                unsafe {
                    mm((n, part.len, d), to, (width, 1), false, qs.as_ptr(), (d, 1), keys, (1, k_width), OneThread);
                    mm((n, part.len, d), dto, (width, 1), false, dys.as_ptr(), (d, 1), values, (1, k_width), OneThread);
                }
            }
            for (i, (p, dp)) in p.chunks_exact_mut(width).zip(dp.chunks_exact_mut(width)).enumerate() {
                let seen = block.visible_keys(i / group, scoring);
                for row in [&mut *p, &mut *dp] {
                    row[..seen.start].fill(0.0);
                    row[seen.end..].fill(0.0);
                }
                let (p, dp) = (&mut p[seen.clone()], &mut dp[seen]);
                let from = at(i / group) + i % group * d;
                let delta = simd::dot(&out[from..from + d], &dy[from..from + d]);
                let lse = lse[(block.row + i / group) * dims.heads + head * group + i % group];
                if let Some(cap) = scoring.softcap {
                    simd::softcap(p, cap);
                }
                simd::dscores_row(p, dp, lse, delta, scoring.softcap.map_or(0.0, |cap| 1.0 / cap));
            }
            let dqs = first(&mut scratch.out, n * d);
            for (i, part) in block.parts().enumerate() {
                let (from, c) = (part.row * k_width + head * d, part.column);
                let (p, ds, to) = (p[c..].as_ptr(), dp[c..].as_ptr(), dqs.as_mut_ptr());
                let (qs, dys) = (qs.as_ptr(), dys.as_ptr());
                // SAFETY: as above; this kv head of dk and dv belongs to this task alone in the rows of its tree.
                unsafe {
                    mm((n, d, part.len), to, (d, 1), i > 0, ds, (width, 1), k[from..].as_ptr(), (k_width, 1), OneThread);
                    mm((part.len, d, n), p_dk.at(from), (k_width, 1), true, ds, (1, width), qs, (d, 1), OneThread);
                    mm((part.len, d, n), p_dv.at(from), (k_width, 1), true, p, (1, width), dys, (d, 1), OneThread);
                }
            }
            for (i, dqs) in dqs.chunks_exact(group * d).enumerate() {
                // SAFETY: the index is in bounds, and only this task uses these heads of this row.
                simd::scaled(scoring.scale, dqs, unsafe { p_dq.zeroed(at(i), group * d) });
            }
        }
    });
    // SAFETY: each row is in one segment, and the tasks have written every head of its rows.
    [unsafe { written(dq) }, dk, dv]
}
