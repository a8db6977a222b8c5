//! Matmuls x·wᵀ with both matrices row-major, for inference, where x has few rows. A matrix library would first rearrange all of
//! w, which costs as much as the matmul, and its order of summation depends on the number of rows. Here every element is summed
//! in one order, so a response does not depend on the other sequences of its batch.

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::attention_flex::Out;
use super::flex::{f32s, flex_f32, tensor_from_vec, to_host};
use super::linear::linear;

/// The number of rows of x that stay in cache while the rows of w are read.
const BLOCK: usize = 64;
/// The number of multiplications below which threads do not pay off.
const SMALL: usize = 32 * 1024;

/// Computes [`linear`] outside any graph. On the CPU a row of the result does not depend on the number of rows.
pub(crate) fn linear_rows(x: Tensor<2>, w: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let ([n, _], [m, _]) = (x.dims(), w.dims());
    match (flex_f32(&x), flex_f32(&w)) {
        (Some(_), Some(_)) => {
            let mut out = Vec::new();
            products_on_host(x.clone(), w, &mut out);
            let y = tensor_from_vec(out, [n, m], &x.device());
            match bias {
                Some(bias) => y + bias.unsqueeze(),
                None => y,
            }
        }
        _ => linear(x, w, bias),
    }
}

/// Computes x [n, k] · w [m, k]ᵀ on the host into `out` [n, m], whose memory is reused.
///
/// # Panics
/// If the tensors are not f32.
pub(crate) fn products_on_host(x: Tensor<2>, w: Tensor<2>, out: &mut Vec<f32>) {
    match (flex_f32(&x), flex_f32(&w)) {
        (Some(xs), Some(ws)) => {
            out.resize(x.dims()[0] * w.dims()[0], 0.0);
            products(f32s(&xs), f32s(&ws), x.dims()[1], out);
        }
        _ => *out = to_host(linear(x, w, None)),
    }
}

/// Computes x [n, k] · w [m, k]ᵀ -> out [n, m], all row-major.
///
/// # Panics
/// If the lengths are inconsistent.
fn products(x: &[f32], w: &[f32], k: usize, out: &mut [f32]) {
    let (n, m) = (x.len() / k, w.len() / k);
    assert!(x.len() == n * k && w.len() == m * k && out.len() == n * m);
    if n == 0 || m == 0 {
        return;
    }
    let p_out = Out(out.as_mut_ptr());
    // The columns of a task: several tasks per thread, and whole tiles.
    let columns = m.div_ceil(8 * rayon::current_num_threads()).next_multiple_of(12).clamp(48, 768);
    let panels = m.div_ceil(columns);
    let task = |task: usize| {
        let (r, c) = (task / panels * BLOCK, task % panels * columns);
        let (x, w) = (&x[r * k..n.min(r + BLOCK) * k], &w[c * k..m.min(c + columns) * k]);
        // SAFETY: rows r.. and columns c.. of `out` belong to this task alone, and are inside it by the assertion above.
        unsafe { panel(x, w, k, p_out.at(r * m + c), m) }
    };
    let tasks = panels * n.div_ceil(BLOCK);
    if n * m * k <= SMALL { (0..tasks).for_each(task) } else { (0..tasks).into_par_iter().for_each(task) }
}

/// Compiles a function for each instruction set, with tiles (lanes, rows of x, rows of w) that fill its registers.
macro_rules! multiversion {
    ($(#[$doc:meta])* $v:vis fn $name:ident($($a:ident: $t:ty),* $(,)?) = $inner:ident) => {
        $(#[$doc])*
        $v fn $name($($a: $t),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn v4($($a: $t),*) { $inner::<true, 16, 4, 4>($($a),*) }
                #[target_feature(enable = "avx2,fma")]
                fn v3($($a: $t),*) { $inner::<true, 8, 3, 4>($($a),*) }
                use std::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("fma") {
                    // SAFETY: the features v4 is compiled for were just detected.
                    return unsafe { v4($($a),*) };
                }
                if has!("avx2") && has!("fma") {
                    // SAFETY: the features v3 is compiled for were just detected.
                    return unsafe { v3($($a),*) };
                }
            }
            $inner::<{ cfg!(target_arch = "aarch64") }, 4, 3, 4>($($a),*)
        }
    };
}

/// # Safety
/// `out` must be valid for x's rows, `stride` apart, with as many elements each as w has rows.
pub(super) unsafe fn panel(x: &[f32], w: &[f32], k: usize, out: *mut f32, stride: usize) {
    multiversion! { fn body(x: &[f32], w: &[f32], k: usize, out: Out, stride: usize) = panel_ }
    body(x, w, k, Out(out), stride);
}

#[inline(always)]
fn panel_<const F: bool, const L: usize, const R: usize, const V: usize>(
    x: &[f32],
    w: &[f32],
    k: usize,
    out: Out,
    stride: usize,
) {
    let rows = x.len() / k;
    // While one tile is computed, the next rows of w are prefetched, since they are far away in memory.
    let ahead = |r: usize, c: usize| prefetch(w, (c + 2 * V) * k + r * V * k / rows, R * V * k / rows);
    dots::<F, L, R, V>(
        rows,
        w.len() / k,
        |r| &x[r * k..(r + 1) * k],
        |c| &w[c * k..(c + 1) * k],
        ahead,
        |r, c, dot| {
            // SAFETY: promised by the caller of `panel`.
            unsafe { *out.at(r * stride + c) = dot }
        },
    );
}

#[inline(always)]
fn prefetch(w: &[f32], from: usize, count: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..count / 16 + 1 {
        // SAFETY: a prefetch is a hint, which reads nothing; any address may be given.
        unsafe { std::arch::x86_64::_mm_prefetch::<3>(w.as_ptr().wrapping_add(from + line * 16).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (w, from, count);
}

multiversion! {
    /// Computes q [n, d] · (rows of `keys` that begin at `starts`) -> scores [n, starts].
    pub(super) fn gathered_dots(q: &[f32], d: usize, keys: &[f32], starts: &[usize], scores: &mut [f32]) = gathered_dots_
}

#[inline(always)]
fn gathered_dots_<const F: bool, const L: usize, const R: usize, const V: usize>(
    q: &[f32],
    d: usize,
    keys: &[f32],
    starts: &[usize],
    scores: &mut [f32],
) {
    let (x, w) = (|r: usize| &q[r * d..(r + 1) * d], |c: usize| &keys[starts[c]..starts[c] + d]);
    dots::<F, L, R, V>(q.len() / d, starts.len(), x, w, |_, _| (), |r, c, dot| scores[r * starts.len() + c] = dot);
}

multiversion! {
    /// Computes weights [n, starts] · (rows of `values` that begin at `starts`) -> out [n, d].
    pub(super) fn gathered_sums(weights: &[f32], values: &[f32], starts: &[usize], d: usize, out: &mut [f32]) = gathered_sums_
}

#[inline(always)]
fn gathered_sums_<const F: bool, const L: usize, const R: usize, const V: usize>(
    weights: &[f32],
    values: &[f32],
    starts: &[usize],
    d: usize,
    out: &mut [f32],
) {
    out.fill(0.0);
    for (c, start) in starts.iter().enumerate() {
        let value = &values[*start..start + d];
        for (out, weights) in out.chunks_exact_mut(d).zip(weights.chunks_exact(starts.len())) {
            for (out, value) in out.iter_mut().zip(value) {
                *out = fma::<F>(weights[c], *value, *out);
            }
        }
    }
}

/// Computes all dot products of n rows with m rows, tile by tile. Calls `ahead` before each tile and `put` with each result.
#[inline(always)]
fn dots<'a, const F: bool, const L: usize, const R: usize, const V: usize>(
    n: usize,
    m: usize,
    x: impl Fn(usize) -> &'a [f32],
    w: impl Fn(usize) -> &'a [f32],
    ahead: impl Fn(usize, usize),
    mut put: impl FnMut(usize, usize, f32),
) {
    let (whole_rows, whole_columns) = (n - n % R, m - m % V);
    for c in (0..whole_columns).step_by(V) {
        let ws: [&[f32]; V] = std::array::from_fn(|j| w(c + j));
        for r in (0..whole_rows).step_by(R) {
            ahead(r, c);
            let tile = tile::<F, L, R, V>(std::array::from_fn(|i| x(r + i)), ws);
            for (i, row) in tile.iter().enumerate() {
                for (j, dot) in row.iter().enumerate() {
                    put(r + i, c + j, *dot);
                }
            }
        }
        for r in whole_rows..n {
            for (j, dot) in tile::<F, L, 1, V>([x(r)], ws)[0].iter().enumerate() {
                put(r, c + j, *dot);
            }
        }
    }
    for c in whole_columns..m {
        for r in 0..n {
            put(r, c, tile::<F, L, 1, 1>([x(r)], [w(c)])[0][0]);
        }
    }
}

#[inline(always)]
fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// Dot products of R rows with V rows of the same length: sums in L lanes, then over the lanes, then the remaining elements.
#[inline(always)]
fn tile<const F: bool, const L: usize, const R: usize, const V: usize>(x: [&[f32]; R], w: [&[f32]; V]) -> [[f32; V]; R] {
    let k = x[0].len();
    let whole = k - k % L;
    let mut registers = [[[0f32; L]; V]; R];
    for at in (0..whole).step_by(L) {
        let ws: [&[f32; L]; V] = std::array::from_fn(|v| lanes(w[v], at));
        for r in 0..R {
            let xs: &[f32; L] = lanes(x[r], at);
            for v in 0..V {
                for i in 0..L {
                    registers[r][v][i] = fma::<F>(xs[i], ws[v][i], registers[r][v][i]);
                }
            }
        }
    }
    let mut out = sums_of_lanes(&registers);
    if whole < k {
        for (r, out) in out.iter_mut().enumerate() {
            for (v, out) in out.iter_mut().enumerate() {
                *out = (whole..k).fold(*out, |sum, i| fma::<F>(x[r][i], w[v][i], sum));
            }
        }
    }
    out
}

/// Σ over the lanes of each sum: lane i is added to lane i + L/2, the results at distance L/4, and so on.
#[inline(always)]
fn sums_of_lanes<const L: usize, const R: usize, const V: usize>(registers: &[[[f32; L]; V]; R]) -> [[f32; V]; R] {
    let mut out = [[0f32; V]; R];
    #[cfg(target_arch = "x86_64")]
    if L == 16 && R * V == 16 {
        // SAFETY: sixteen arrays of sixteen floats, one after another; and only code compiled for AVX-512 has sixteen lanes.
        let sums = unsafe { sums_of_sixteen(&*std::ptr::from_ref(registers).cast()) };
        for (r, out) in out.iter_mut().enumerate() {
            out.copy_from_slice(&sums[r * V..(r + 1) * V]);
        }
        return out;
    }
    // The optimizer cannot see through this copy; otherwise it would keep the sums in memory instead of registers.
    let mut sums = *registers;
    std::hint::black_box(&mut sums);
    let mut width = L;
    while width > 4 {
        width /= 2;
        for sum in sums.iter_mut().flatten() {
            for i in 0..width {
                sum[i] += sum[i + width];
            }
        }
        std::hint::black_box(&mut sums);
    }
    for (out, sum) in out.iter_mut().flatten().zip(sums.iter().flatten()) {
        *out = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }
    out
}

/// Computes [`sums_of_lanes`] of sixteen sums at once: each of four steps adds the halves of two vectors into one. Summing one
/// vector after another would take longer than the multiplications of a tile.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sums_of_sixteen(sums: &[[f32; 16]; 16]) -> [f32; 16] {
    use std::arch::x86_64::{__m512, _mm512_add_ps, _mm512_loadu_ps, _mm512_shuffle_f32x4, _mm512_shuffle_ps, _mm512_storeu_ps};
    use std::array::from_fn;
    // SAFETY: each array has the sixteen floats that are read.
    let v: [__m512; 16] = from_fn(|i| unsafe { _mm512_loadu_ps(sums[i].as_ptr()) });
    let quarters = |a, b| _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
    let eighths = |a, b| _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
    let pairs = |a, b| _mm512_add_ps(_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xee>(a, b));
    let singles = |a, b| _mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xdd>(a, b));
    let v: [__m512; 8] = from_fn(|i| quarters(v[i], v[i + 8]));
    let v: [__m512; 4] = from_fn(|i| eighths(v[i], v[i + 4]));
    let mut mixed = [0f32; 16];
    // SAFETY: the array has the sixteen floats that are written.
    unsafe { _mm512_storeu_ps(mixed.as_mut_ptr(), singles(pairs(v[0], v[2]), pairs(v[1], v[3]))) };
    // Moves each sum to its index: the steps leave them in another order.
    from_fn(|i| mixed[[0, 8, 4, 12].iter().position(|at| *at == i / 4 * 4).unwrap_or(0) * 4 + [0, 2, 1, 3][i % 4]])
}

#[inline(always)]
fn lanes<const L: usize>(row: &[f32], at: usize) -> &[f32; L] {
    row[at..at + L].first_chunk().expect("a slice of L elements")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step % 1013) as f32 - 500.0) / 500.0).collect()
    }

    /// Compares with sums in f64, and compares each row bit for bit with the same row computed alone.
    #[test]
    fn rows_are_right_and_independent() {
        for (n, m, k) in [(1, 1, 1), (5, 7, 3), (70, 103, 67), (9, 800, 64)] {
            let (x, w) = (values(n * k, 7919), values(m * k, 613));
            let mut out = vec![f32::NAN; n * m];
            products(&x, &w, k, &mut out);
            let mut alone = vec![0.0; m];
            for r in 0..n {
                let row = &x[r * k..(r + 1) * k];
                products(row, &w, k, &mut alone);
                assert_eq!(alone, out[r * m..(r + 1) * m], "row {r} of {n}x{m}x{k}");
                for (c, got) in alone.iter().enumerate() {
                    let exact: f64 = row.iter().zip(&w[c * k..]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!((f64::from(*got) - exact).abs() < 1e-5 * k as f64, "{n}x{m}x{k} at {r}, {c}: {got}, {exact}");
                }
            }
        }
    }
}
