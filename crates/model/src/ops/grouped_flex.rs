//! CPU kernels of a mixture of experts. Tasks are blocks of one expert's rows and columns. Their sizes are fixed, so results do
//! not depend on the number of threads.

use std::ops::Range;

use gemm::Parallelism::None as OneThread;
use rayon::prelude::*;

use super::attention_flex::Out;
use super::flex::{GRAIN, matmul_ptr, uninit, written};
use super::groups::Groups;
use super::rows::panel;
use super::simd;

/// Rows and columns of the result of one task.
const ROWS: usize = 256;
const COLUMNS: usize = 256;
/// The number of multiplications below which threads do not pay off.
const SMALL: usize = 32 * 1024;

/// Calls `task` with each expert and each block of its result: its places, cut to `rows`, and `columns` of the `width` columns.
fn blocks(groups: &Groups, [rows, columns]: [usize; 2], width: usize) -> Vec<(usize, Range<usize>, Range<usize>)> {
    let mut all = Vec::new();
    for (expert, places) in groups.used() {
        for row in places.clone().step_by(rows) {
            let rows = row..places.end.min(row.saturating_add(rows));
            all.extend((0..width).step_by(columns).map(|at| (expert, rows.clone(), at..width.min(at + columns))));
        }
    }
    all
}

fn run<T: Send>(is_small: bool, tasks: Vec<T>, task: impl Fn(T) + Sync + Send) {
    if is_small { tasks.into_iter().for_each(task) } else { tasks.into_par_iter().for_each(task) }
}

/// x [n, width] -> [places, width]
pub(super) fn gather(x: &[f32], width: usize, groups: &Groups) -> Vec<f32> {
    assert_eq!(x.len(), groups.rows() * width);
    let mut y = uninit(groups.slots.len() * width);
    let rows = (GRAIN / width).max(1);
    let tasks = y.par_chunks_mut(rows * width).zip(groups.slots.par_chunks(rows));
    tasks.for_each(|(y, slots)| {
        for (y, slot) in y.chunks_exact_mut(width).zip(slots) {
            let row = slot / groups.k * width;
            y.iter_mut().zip(&x[row..row + width]).for_each(|(y, x)| _ = y.write(*x));
        }
    });
    // SAFETY: every place has a slot, whose row was written.
    unsafe { written(y) }
}

/// Adds up the rows at the places of each row's slots, times the weights [n, k] if given: y [places, width] -> [n, width].
pub(super) fn combine(y: &[f32], width: usize, weights: Option<&[f32]>, groups: &Groups) -> Vec<f32> {
    assert!(y.len() == groups.slots.len() * width && weights.is_none_or(|weights| weights.len() == groups.slots.len()));
    let mut out = vec![0.0; groups.rows() * width];
    let rows = (GRAIN / width).max(1);
    out.par_chunks_mut(rows * width).enumerate().for_each(|(task, out)| {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let first = (task * rows + row) * groups.k;
            for slot in first..first + groups.k {
                let place = groups.places[slot] * width;
                simd::axpy(weights.map_or(1.0, |weights| weights[slot]), &y[place..place + width], out);
            }
        }
    });
    out
}

/// The gradients of y [places, width] and of the weights [n, k] of [`combine`].
pub(super) fn combine_gradients(y: &[f32], weights: &[f32], d: &[f32], groups: &Groups) -> (Vec<f32>, Vec<f32>) {
    let width = d.len() / groups.rows();
    assert!(y.len() == groups.slots.len() * width && weights.len() == groups.slots.len());
    let (mut d_y, mut by_place) = (vec![0.0; y.len()], vec![0.0; weights.len()]);
    let rows = (GRAIN / width).max(1);
    let tasks = d_y.par_chunks_mut(rows * width).zip(by_place.par_chunks_mut(rows)).zip(y.par_chunks(rows * width));
    tasks.zip(groups.slots.par_chunks(rows)).for_each(|(((d_y, d_weights), y), slots)| {
        let places = d_y.chunks_exact_mut(width).zip(y.chunks_exact(width)).zip(d_weights).zip(slots);
        for (((d_y, y), d_weight), slot) in places {
            let row = slot / groups.k * width;
            let d = &d[row..row + width];
            *d_weight = simd::dot(d, y);
            simd::axpy(weights[*slot], d, d_y);
        }
    });
    (d_y, groups.places.iter().map(|place| by_place[*place]).collect())
}

/// Multiplies the rows of each expert by the transpose of its matrix: x [places, width], w [experts, out, width] -> [places, out].
pub(super) fn by_transposes(x: &[f32], w: &[f32], [out, width]: [usize; 2], groups: &Groups) -> Vec<f32> {
    let mut y = uninit(groups.slots.len() * out);
    assert!(x.len() == groups.slots.len() * width && w.len() == groups.counts().count() * out * width);
    let p_y = Out(y.as_mut_ptr().cast());
    run(x.len() * out <= SMALL, blocks(groups, [ROWS, COLUMNS], out), |(expert, rows, columns)| {
        let (x, w) = (&x[rows.start * width..rows.end * width], &w[(expert * out + columns.start) * width..]);
        let size = (rows.len(), columns.len(), width);
        // SAFETY: the assertion keeps all elements inside; each block of y belongs to one task.
        unsafe {
            let y = p_y.at(rows.start * out + columns.start);
            matmul_ptr(size, y, (out, 1), false, x.as_ptr(), (width, 1), w.as_ptr(), (1, width), OneThread);
        }
    });
    // SAFETY: the blocks cover all places and columns.
    unsafe { written(y) }
}

/// Multiplies the rows of each expert by its matrix: dy [places, out], w [experts, out, width] -> [places, width].
pub(super) fn by_matrices(dy: &[f32], w: &[f32], [out, width]: [usize; 2], groups: &Groups) -> Vec<f32> {
    let mut dx = uninit(groups.slots.len() * width);
    assert!(dy.len() == groups.slots.len() * out && w.len() == groups.counts().count() * out * width);
    let p_dx = Out(dx.as_mut_ptr().cast());
    run(dy.len() * width <= SMALL, blocks(groups, [ROWS, COLUMNS], width), |(expert, rows, columns)| {
        let (dy, w) = (&dy[rows.start * out..rows.end * out], &w[expert * out * width + columns.start..]);
        let size = (rows.len(), columns.len(), out);
        // SAFETY: the assertion keeps all elements inside; each block of dx belongs to one task.
        unsafe {
            let dx = p_dx.at(rows.start * width + columns.start);
            matmul_ptr(size, dx, (width, 1), false, dy.as_ptr(), (out, 1), w.as_ptr(), (width, 1), OneThread);
        }
    });
    // SAFETY: the blocks cover all places and columns.
    unsafe { written(dx) }
}

/// The gradient of the matrices [experts, out, width]: dyᵀ·x over the rows of each expert, 0 for an expert without rows.
pub(super) fn gradients(x: &[f32], dy: &[f32], [out, width]: [usize; 2], groups: &Groups) -> Vec<f32> {
    let mut dw = vec![0.0; groups.counts().count() * out * width];
    assert!(x.len() == groups.slots.len() * width && dy.len() == groups.slots.len() * out);
    let p_dw = Out(dw.as_mut_ptr());
    run(x.len() * out <= SMALL, blocks(groups, [usize::MAX, COLUMNS], out), |(expert, rows, columns)| {
        let (x, dy) = (&x[rows.start * width..], &dy[rows.start * out + columns.start..]);
        let size = (columns.len(), width, rows.len());
        // SAFETY: the assertion keeps all elements inside; each block of dw belongs to one task.
        unsafe {
            let dw = p_dw.at((expert * out + columns.start) * width);
            matmul_ptr(size, dw, (width, 1), false, dy.as_ptr(), (1, out), x.as_ptr(), (width, 1), OneThread);
        }
    });
    dw
}

/// Computes [`by_transposes`] so that a row of the result does not depend on the other rows.
pub(super) fn independent_rows(x: &[f32], w: &[f32], [out, width]: [usize; 2], groups: &Groups) -> Vec<f32> {
    let mut y = uninit(groups.slots.len() * out);
    assert!(x.len() == groups.slots.len() * width && w.len() == groups.counts().count() * out * width);
    let p_y: Out = Out(y.as_mut_ptr().cast());
    let columns = out.div_ceil(4 * rayon::current_num_threads()).next_multiple_of(12).clamp(48, 768);
    run(x.len() * out <= SMALL, blocks(groups, [64, columns], out), |(expert, rows, columns)| {
        let x = &x[rows.start * width..rows.end * width];
        let w = &w[(expert * out + columns.start) * width..(expert * out + columns.end) * width];
        // SAFETY: the assertion keeps all elements inside; each block of y belongs to one task.
        unsafe { panel(x, w, width, p_y.at(rows.start * out + columns.start), out) }
    });
    // SAFETY: the blocks cover all places and columns.
    unsafe { written(y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step % 1013) as f32 - 500.0) / 500.0).collect()
    }

    /// Every kernel against sums in f64, with experts of no, few and many rows; and rows alone against rows together, bit for bit.
    #[test]
    fn products_and_gradients_of_uneven_groups() {
        let (n, k, [out, width]) = (301, 2, [270, 37]);
        let experts: Vec<u32> = (0..n * k).map(|slot| if slot % 2 == 0 { 1 } else { [3, 3, 3, 4][slot / 2 % 4] }).collect();
        let groups = Groups::new(experts.clone(), k, 6);
        let (x, w, weights) = (values(n * width, 7919), values(6 * out * width, 613), values(n * k, 37));
        let gathered = gather(&x, width, &groups);
        let dot = |a: &[f32], b: &mut dyn Iterator<Item = f32>| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-4 * b.abs().max(1.0), "{a}, {b}");
        let (y, alone) =
            (by_transposes(&gathered, &w, [out, width], &groups), independent_rows(&gathered, &w, [out, width], &groups));
        let dx = by_matrices(&y, &w, [out, width], &groups);
        for slot in (0..n * k).step_by(17) {
            let (row, place, at) = (slot / k, groups.places[slot], experts[slot] as usize * out * width);
            for column in (0..out).step_by(13) {
                let w = &w[at + column * width..at + (column + 1) * width];
                let exact = dot(&x[row * width..(row + 1) * width], &mut w.iter().copied());
                near(y[place * out + column], exact);
                near(alone[place * out + column], exact);
            }
            let d = &y[place * out..(place + 1) * out];
            (0..width).for_each(|c| near(dx[place * width + c], dot(d, &mut (0..out).map(|o| w[at + o * width + c]))));
        }
        let dw = gradients(&gathered, &y, [out, width], &groups);
        for (expert, column, row) in [(1, 269, 36), (3, 0, 5), (4, 100, 0), (0, 1, 1), (5, 200, 30)] {
            let places = (0..n * k).filter(|slot| experts[*slot] == expert).map(|slot| groups.places[slot]);
            let exact = places.map(|p| f64::from(y[p * out + column] * gathered[p * width + row])).sum();
            near(dw[(expert as usize * out + column) * width + row], exact);
        }
        let sum = combine(&y, out, Some(&weights), &groups);
        let (d_y, d_weights) = combine_gradients(&y, &weights, &sum, &groups);
        for slot in (0..n * k).step_by(29) {
            let (row, place) = (slot / k * out, groups.places[slot] * out);
            near(d_weights[slot], dot(&y[place..place + out], &mut sum[row..row + out].iter().copied()));
            near(d_y[place + 3], f64::from(weights[slot] * sum[row + 3]));
            let terms = (0..k).map(|j| f64::from(weights[slot / k * k + j] * y[groups.places[slot / k * k + j] * out + 7]));
            near(sum[row + 7], terms.sum());
        }
        let one = Groups::new(experts[2 * 40..2 * 41].to_vec(), k, 6);
        let row = independent_rows(&gather(&x[40 * width..41 * width], width, &one), &w, [out, width], &one);
        for j in 0..k {
            let [place, of_all] = [one.places[j], groups.places[40 * k + j]].map(|place| place * out);
            assert_eq!(row[place..place + out], alone[of_all..of_all + out]);
        }
    }
}
