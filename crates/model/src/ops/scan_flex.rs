//! CPU kernels of the selective scan over packed rows. A task computes some heads of one group for a whole tree: the stem first,
//! then each branch from the stem's last state. The rows of a segment are processed in chunks (`scan_head.rs`), one after another.
//! Backward tasks take the chunks in reverse from the states that the forward pass kept at the beginning of each; the gradients of
//! all branches meet in the stem's last state, in order. Tasks write disjoint heads of shared buffers through raw pointers. The
//! gradients of B and C are sums over tasks, in order.

use gemm::Parallelism::None as OneThread;
use rayon::prelude::*;

use super::attention_flex::Out;
use super::chunks::{Kept, RowChunk, chunks, copy, for_each, sized, zeros};
use super::delta_chunk::{sigmoid, softplus};
use super::flex::{matmul as mm, matmul_ptr, uninit, written};
use super::scan_head::{HeadBlock, ScanHead};
use super::scan_inputs::{ScanLayout, ScanShape, ScanSlices};
use super::simd;

/// Computes CBᵀ of a group in a chunk, [n, n].
fn products(x: &ScanSlices, shape: ScanShape, group: usize, chunk: &RowChunk, cb: &mut Vec<f32>) {
    let (n, dim, width, first) = (chunk.rows.len(), shape.state_dim, shape.width(), chunk.rows.start);
    let (b, c) = (x.b(shape, group, first), x.c(shape, group, first));
    mm((n, n, dim), sized(cb, n * n), (n, 1), false, c, (width, 1), b, (1, width), OneThread);
}

/// Returns the outputs [rows, values], and the states that `kept` names.
pub(super) fn forward(x: &ScanSlices, layout: &ScanLayout, kept: Kept) -> (Vec<f32>, Vec<f32>) {
    let (packed, shape) = (&layout.packed, layout.shape);
    x.check(packed.rows(), shape);
    let ((trees, count), blocks) = (chunks(packed), HeadBlock::all(shape));
    let (size, p, dim) = (shape.state(), shape.head_dim, shape.state_dim);
    let (values, width) = (shape.values(), shape.width());
    let mut y = uninit(packed.rows() * values);
    let mut states = uninit(
        shape.states()
            * match kept {
                Kept::Nothing => 0,
                Kept::Chunks => count,
                Kept::Ends => trees.len(),
            },
    );
    let (out, keep) = (Out(y.as_mut_ptr().cast()), Out(states.as_mut_ptr().cast()));
    for_each(packed, blocks.len(), |tree, block, (cb, head_chunk): &mut (Vec<f32>, ScanHead)| {
        let HeadBlock { group, heads } = &blocks[block];
        let mut state = vec![0.0; heads.len() * size];
        let mut stem = Vec::new();
        for (i, segment) in trees[tree].iter().enumerate() {
            if i > 0 {
                state.copy_from_slice(&stem);
            }
            for chunk in segment {
                products(x, shape, *group, chunk, cb);
                let (n, first) = (chunk.rows.len(), chunk.rows.start);
                let (b, c) = (x.b(shape, *group, first), x.c(shape, *group, first));
                for (head, state) in heads.clone().zip(state.chunks_exact_mut(size)) {
                    if let Some(index) = chunk.state.filter(|_| kept == Kept::Chunks) {
                        // SAFETY: this task alone writes the states of its heads before this chunk.
                        unsafe { copy(state, keep, (index * shape.heads + head) * size) };
                    }
                    head_chunk.load(x, shape, head, &chunk.rows, cb);
                    let y = out.at(first * values + head * p);
                    if chunk.state.is_some() {
                        let (c, state) = (c.as_ptr(), state.as_ptr());
                        // SAFETY: a row is in one chunk, and its head is this task's. All slices hold the shapes given.
                        unsafe { matmul_ptr((n, p, dim), y, (values, 1), false, c, (width, 1), state, (p, 1), OneThread) };
                    }
                    for (i, row) in chunk.rows.clone().enumerate() {
                        let at = row * values + head * p;
                        // SAFETY: as above; with a state, the product has written the row.
                        let y = unsafe {
                            match chunk.state {
                                Some(_) => std::slice::from_raw_parts_mut(out.at(at), p),
                                None => out.zeroed(at, p),
                            }
                        };
                        simd::scale(head_chunk.from_start[i], y);
                        simd::axpy(x.skip[head], x.x(shape, head, row), y);
                    }
                    let (m, u) = (head_chunk.m.as_ptr(), head_chunk.u.as_ptr());
                    // SAFETY: as above.
                    unsafe { matmul_ptr((n, p, n), y, (values, 1), true, m, (n, 1), u, (p, 1), OneThread) };
                    head_chunk.advance(shape, b, chunk.state.is_some(), state);
                }
            }
            if i == 0 {
                if kept == Kept::Ends {
                    // SAFETY: this task alone writes the states of its heads after this stem.
                    unsafe { copy(&state, keep, (tree * shape.heads + heads.start) * size) };
                }
                if trees[tree].len() > 1 {
                    stem.clone_from(&state);
                }
            }
        }
    });
    // SAFETY: every row is in one chunk; the tasks have written all heads of it and all states that `kept` names.
    unsafe { (written(y), written(states)) }
}

/// The buffers of a thread in the backward pass.
#[derive(Default)]
struct Scratch {
    cb: Vec<f32>,
    head: ScanHead,
    /// Gradient of CBᵀ, [n, n], summed over the heads.
    d_cb: Vec<f32>,
    /// Gradients of B and C of a chunk, [n, state dim], summed over the heads.
    db: Vec<f32>,
    dc: Vec<f32>,
    /// Rows of dy, and the gradient of U, [n, head dim].
    dy: Vec<f32>,
    du: Vec<f32>,
    /// Gradient of M, [n, n].
    dm: Vec<f32>,
    /// A product with a state, [n, state dim].
    by_state: Vec<f32>,
    /// Gradient of c; large terms cancel, so in f64.
    d_sums: Vec<f64>,
}

/// The buffers of the gradients: those of x and dt, the parts of each tree in those of A_log, dt_bias and D, and the parts of each
/// block of heads in those of B and C, [blocks, rows, 2 · state dim].
struct ScanGradients {
    xbc: Out,
    dt: Out,
    vectors: Out,
    shared: Out,
}

/// Returns the gradients of the inputs from the gradient of the outputs and the states that [`Kept::Chunks`] names.
pub(super) fn backward(x: &ScanSlices, states: &[f32], dy: &[f32], layout: &ScanLayout) -> [Vec<f32>; 5] {
    let (packed, shape, rows) = (&layout.packed, layout.shape, layout.packed.rows());
    x.check(rows, shape);
    assert_eq!(dy.len(), rows * shape.values());
    let ((trees, count), blocks) = (chunks(packed), HeadBlock::all(shape));
    assert_eq!(states.len(), count * shape.states());
    let (size, dim, heads) = (shape.state(), shape.state_dim, shape.heads);
    let (mut d_xbc, mut d_dt) = (vec![0.0; x.xbc.len()], vec![0.0; x.dt.len()]);
    let (mut vectors, mut shared) = (vec![0.0; trees.len() * 3 * heads], vec![0.0; blocks.len() * rows * 2 * dim]);
    let [xbc, dt, to_vectors, to_shared] =
        [&mut d_xbc, &mut d_dt, &mut vectors, &mut shared].map(|buffer| Out(buffer.as_mut_ptr()));
    let out = ScanGradients { xbc, dt, vectors: to_vectors, shared: to_shared };
    for_each(packed, blocks.len(), |tree, number, scratch: &mut Scratch| {
        let block = &blocks[number];
        let (mut d_stem, mut d_state) = (vec![0.0; block.heads.len() * size], vec![0.0; block.heads.len() * size]);
        for (i, segment) in trees[tree].iter().enumerate().rev() {
            if i == 0 {
                d_state.copy_from_slice(&d_stem);
            } else {
                d_state.fill(0.0);
            }
            for chunk in segment.iter().rev() {
                let state = |head: usize| {
                    let first = (chunk.state? * heads + head) * size;
                    Some(&states[first..first + size])
                };
                scratch.begin(x, shape, block.group, chunk);
                for (head, d_state) in block.heads.clone().zip(d_state.chunks_exact_mut(size)) {
                    scratch.head(x, shape, (tree, block.group, head), chunk, state(head), dy, d_state, &out);
                }
                scratch.end(x, shape, block.group, chunk, out.shared.at((number * rows + chunk.rows.start) * 2 * dim));
            }
            if i > 0 {
                simd::axpy(1.0, &d_state, &mut d_stem);
            }
        }
    });
    // The sums over the blocks of each group, in their order.
    d_xbc.par_chunks_exact_mut(shape.width()).enumerate().for_each(|(row, d)| {
        for (number, block) in blocks.iter().enumerate() {
            let part = &shared[(number * rows + row) * 2 * dim..][..2 * dim];
            for (part, first) in part.chunks_exact(dim).zip([shape.values(), shape.values() + shape.keys()]) {
                simd::axpy(1.0, part, &mut d[first + block.group * dim..][..dim]);
            }
        }
    });
    let mut sums = vec![0.0; 3 * heads];
    vectors.chunks_exact(sums.len()).for_each(|part| simd::axpy(1.0, part, &mut sums));
    let vector = |number: usize| sums[number * heads..(number + 1) * heads].to_vec();
    [d_xbc, d_dt, vector(0), vector(1), vector(2)]
}

impl Scratch {
    /// Begins a chunk.
    fn begin(&mut self, x: &ScanSlices, shape: ScanShape, group: usize, chunk: &RowChunk) {
        let n = chunk.rows.len();
        products(x, shape, group, chunk, &mut self.cb);
        zeros(&mut self.d_cb, n * n);
        [&mut self.db, &mut self.dc].into_iter().for_each(|buffer| _ = zeros(buffer, n * shape.state_dim));
    }

    /// Goes back through a head of the chunk. `d_state` is the gradient of the state after the chunk, and becomes that of the state
    /// before it.
    #[expect(clippy::too_many_arguments, reason = "the values of one head in one chunk")]
    fn head(
        &mut self,
        x: &ScanSlices,
        shape: ScanShape,
        (tree, group, head): (usize, usize, usize),
        chunk: &RowChunk,
        state: Option<&[f32]>,
        dy: &[f32],
        d_state: &mut [f32],
        out: &ScanGradients,
    ) {
        let Self { cb, head: h, d_cb, db, dc, dy: rows_of_dy, du, dm, by_state, d_sums } = self;
        let (n, p, dim, width) = (chunk.rows.len(), shape.head_dim, shape.state_dim, shape.width());
        let (b, c) = (x.b(shape, group, chunk.rows.start), x.c(shape, group, chunk.rows.start));
        h.load(x, shape, head, &chunk.rows, cb);
        rows_of_dy.clear();
        for row in chunk.rows.clone() {
            rows_of_dy.extend_from_slice(&dy[row * shape.values() + head * p..][..p]);
        }
        let dy = &*rows_of_dy;
        let d_sums = zeros(d_sums, n);
        // The gradient of U: through the state after the chunk, and through the outputs.
        let du = sized(du, n * p);
        mm((n, p, dim), du, (p, 1), false, b, (width, 1), d_state, (p, 1), OneThread);
        du.chunks_exact_mut(p).zip(&h.to_end).for_each(|(du, decay)| simd::scale(*decay, du));
        mm((n, p, n), du, (p, 1), true, &h.m, (1, n), dy, (p, 1), OneThread);
        // The gradients of M, of L through it, and of CBᵀ.
        mm((n, n, p), sized(dm, n * n), (n, 1), false, dy, (p, 1), &h.u, (1, p), OneThread);
        for i in 0..n {
            for j in 0..=i {
                let at = i * n + j;
                d_cb[at] += dm[at] * h.decay[at];
                let d_log = f64::from(dm[at]) * f64::from(h.m[at]);
                d_sums[i] += d_log;
                d_sums[j] -= d_log;
            }
        }
        // Adds a product with a state to the gradient of B or C, and calls `see` with each row's product with B or C.
        let mut by = |rows: &[f32], state: &[f32], of: &[f32], d: &mut [f32], see: &mut dyn FnMut(usize, f64)| {
            let products = sized(by_state, n * dim);
            mm((n, dim, p), products, (dim, 1), false, rows, (p, 1), state, (1, p), OneThread);
            for (i, product) in products.chunks_exact(dim).enumerate() {
                see(i, f64::from(simd::dot(product, &of[i * width..][..dim])));
            }
            simd::axpy(1.0, products, d);
        };
        by(h.moved(p), d_state, b, db, &mut |i, d_log| {
            d_sums[i] -= d_log;
            d_sums[n - 1] += d_log;
        });
        match state {
            None => d_state.fill(0.0),
            Some(state) => {
                d_sums[n - 1] += f64::from(h.from_start[n - 1] * simd::dot(state, d_state));
                let last = h.from_start[n - 1];
                let weighted = h.weighted(dy, p, |h, i| h.from_start[i]);
                by(weighted, state, c, dc, &mut |i, d_log| d_sums[i] += d_log);
                simd::scale(last, d_state);
                mm((dim, p, n), d_state, (p, 1), true, c, (1, width), weighted, (p, 1), OneThread);
            }
        }
        // g is in every later sum c of the chunk.
        let (rate, skip, mut d_g) = (x.a_log[head].exp(), x.skip[head], 0.0);
        for (i, row) in chunk.rows.clone().enumerate().rev() {
            d_g += d_sums[i];
            let d_g = d_g as f32;
            let (du, dy, own) = (&du[i * p..][..p], &dy[i * p..][..p], x.x(shape, head, row));
            let step = softplus(h.raw[i]);
            let is_inside = step >= shape.limits[0] && step <= shape.limits[1];
            let d_raw = if is_inside { (simd::dot(du, own) - rate * d_g) * sigmoid(h.raw[i]) } else { 0.0 };
            let (d_x, part) = (out.xbc.at(row * width + head * p), 3 * tree * shape.heads + head);
            // SAFETY: the row's head, its time step and the tree's parts of the sums are this task's alone.
            unsafe {
                out.dt.at(row * shape.heads + head).write(d_raw);
                *out.vectors.at(part) += d_g * h.g[i];
                *out.vectors.at(part + shape.heads) += d_raw;
                *out.vectors.at(part + 2 * shape.heads) += simd::dot(dy, own);
                (0..p).for_each(|k| d_x.wrapping_add(k).write(h.step[i] * du[k] + skip * dy[k]));
            }
        }
    }

    /// Ends a chunk: writes the gradients of its B and C to `to`, the rows of this block of heads.
    fn end(&mut self, x: &ScanSlices, shape: ScanShape, group: usize, chunk: &RowChunk, to: *mut f32) {
        let Self { d_cb, db, dc, .. } = self;
        let (n, dim, width, first) = (chunk.rows.len(), shape.state_dim, shape.width(), chunk.rows.start);
        let (b, c) = (x.b(shape, group, first), x.c(shape, group, first));
        mm((n, dim, n), dc, (dim, 1), true, d_cb, (n, 1), b, (width, 1), OneThread);
        mm((n, dim, n), db, (dim, 1), true, d_cb, (1, n), c, (width, 1), OneThread);
        for (i, (db, dc)) in db.chunks_exact(dim).zip(dc.chunks_exact(dim)).enumerate() {
            for (part, d) in [db, dc].into_iter().enumerate() {
                // SAFETY: the block's rows are this task's alone.
                unsafe { std::ptr::copy_nonoverlapping(d.as_ptr(), to.wrapping_add((2 * i + part) * dim), dim) };
            }
        }
    }
}
