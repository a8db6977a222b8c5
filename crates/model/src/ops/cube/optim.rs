//! Optimizer kernels over all parameters: AdamW's update, and the squares of gradients. A launch takes as many tensors as a
//! kernel may bind, since a model has hundreds of tensors, most of them small.
//!
//! The cubes of a launch are divided among its tensors; the cubes of tensor t begin at `starts[t]`. A kernel compares its cube's
//! index with all entries. Buffers cannot be indexed, so the kernel has a copy of its body for each tensor.

use burn::backend::Cube;
use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{UNITS, buffer, cube_dim, dense, empty, grid, of_gpu, primitive};
use super::sum::sum_of_units;
use crate::ops::{AdamwStep, to_host};

/// Elements that a cube updates.
const UPDATED: usize = 8 * 1024;
/// Elements whose squares a cube sums, 64 per unit: partial sums lose little precision in f32.
const SQUARED: usize = 16 * 1024;
/// The largest number of tensors per launch. CUDA passes 4 KiB of arguments: 12 bytes per buffer and 4 per number.
const MAX_UPDATED: usize = 60;
const MAX_SQUARED: usize = 100;

/// w ← w·keep;  m ← m + gain1·(g − m);  v ← β₂v + gain2·g²;  w ← w − step · m / (√v/correction2_sqrt + ε), where g is first
/// scaled.
#[cube(launch_unchecked)]
fn update(
    w: &mut Sequence<Box<[f32]>>,
    m: &mut Sequence<Box<[f32]>>,
    v: &mut Sequence<Box<[f32]>>,
    g: &Sequence<Box<[f32]>>,
    sizes: &Sequence<usize>,
    starts: &Sequence<usize>,
    grad_scale: f32,
    gain1: f32,
    beta2: f32,
    gain2: f32,
    correction2_sqrt: f32,
    eps: f32,
    keep: f32,
    step: f32,
    #[comptime] tensors: usize,
    #[comptime] units: usize,
    #[comptime] per_cube: usize,
) {
    #[unroll]
    for t in 0..tensors {
        if CUBE_POS >= starts[t] && CUBE_POS < starts[t + 1] {
            let first = (CUBE_POS - starts[t]) * per_cube;
            let end = min(first + per_cube, sizes[t]);
            let w = &mut w[t];
            let m = &mut m[t];
            let v = &mut v[t];
            let mut i = first + UNIT_POS as usize;
            while i < end {
                let grad = g[t][i] * grad_scale;
                let mean = m[i] + (grad - m[i]) * gain1;
                let square = v[i] * beta2 + grad * grad * gain2;
                m[i] = mean;
                v[i] = square;
                w[i] = w[i] * keep - step * mean / (square.sqrt() / correction2_sqrt + eps);
                i += units;
            }
        }
    }
}

/// Writes Σ g² of each cube's elements to `sums`, from index `before` on.
#[cube(launch_unchecked)]
fn square(
    g: &Sequence<Box<[f32]>>,
    sums: &mut [f32],
    sizes: &Sequence<usize>,
    starts: &Sequence<usize>,
    before: usize,
    #[comptime] tensors: usize,
    #[comptime] units: usize,
    #[comptime] per_cube: usize,
) {
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut total = 0f32;
    #[unroll]
    for t in 0..tensors {
        if CUBE_POS >= starts[t] && CUBE_POS < starts[t + 1] {
            let first = (CUBE_POS - starts[t]) * per_cube;
            let end = min(first + per_cube, sizes[t]);
            let mut i = first + UNIT_POS as usize;
            while i < end {
                let value = g[t][i];
                total += value * value;
                i += units;
            }
        }
    }
    // Every unit of every cube gets here, also in cubes past the last tensor.
    let sum = sum_of_units(total, &mut scratch, units);
    if UNIT_POS == 0 && CUBE_POS < starts[tensors] {
        sums[before + CUBE_POS] = sum;
    }
}

/// Updates weights and moments by AdamW, from (w, m, v, g) of each parameter, flat. Returns w, m and v, in the old buffers if
/// these are not shared.
///
/// # Errors
/// Returns the tensors if they are not all f32 on one GPU.
///
/// # Panics
/// If the four tensors of a parameter differ in size.
pub fn adamw(all: Vec<[Tensor<1>; 4]>, s: AdamwStep) -> Result<Vec<[Tensor<1>; 3]>, Vec<[Tensor<1>; 4]>> {
    if !all.iter().flatten().all(is_f32) {
        return Err(all);
    }
    let all: Vec<_> = all.into_iter().map(|[w, m, v, g]| ([w, m, v].map(writable), dense(primitive(g)))).collect();
    assert!(all.iter().all(|(own, g)| own.iter().all(|t| size(t) == size(g))), "moments and gradient as large as the weight");
    for group in groups(&all, |(_, g)| g, 4, MAX_UPDATED) {
        let sizes = group.iter().map(|(_, g)| size(g)).collect::<Vec<_>>();
        let starts = starts(&sizes, UPDATED);
        let buffers = |place: usize| group.iter().map(|(own, _)| buffer(&own[place])).collect();
        // SAFETY: a unit stays within its tensor's size, which all four share; cubes past the last tensor do nothing.
        unsafe {
            update::launch_unchecked(
                &group[0].1.client,
                grid(starts[sizes.len()]),
                cube_dim(),
                buffers(0),
                buffers(1),
                buffers(2),
                group.iter().map(|(_, g)| buffer(g)).collect(),
                sizes.iter().copied().collect(),
                starts.into_iter().collect(),
                s.grad_scale,
                s.gain1,
                s.beta2,
                s.gain2,
                s.correction2_sqrt,
                s.eps,
                s.keep,
                s.lr / s.correction1,
                sizes.len(),
                UNITS,
                UPDATED,
            );
        }
    }
    Ok(all.into_iter().map(|(own, _)| own.map(of_gpu)).collect())
}

/// Returns Σ g² of each tensor with one transfer for all; `None` if they are not all f32 on one GPU. Sums over 16 Ki elements are
/// f32; these sums are added in f64, in order.
pub fn squares<'a>(all: impl IntoIterator<Item = &'a Tensor<1>>) -> Option<Vec<f64>> {
    let all: Option<Vec<CubeTensor>> = all.into_iter().map(|g| is_f32(g).then(|| dense(primitive(g.clone())))).collect();
    let all = all?;
    let Some(first) = all.first() else { return Some(Vec::new()) };
    let cubes: Vec<usize> = all.iter().map(|g| size(g).div_ceil(SQUARED)).collect();
    let sums = empty(first, [cubes.iter().sum::<usize>().max(1)], DType::F32);
    let mut before = 0;
    for group in groups(&all, |g| g, 1, MAX_SQUARED) {
        let sizes = group.iter().map(size).collect::<Vec<_>>();
        let starts = starts(&sizes, SQUARED);
        let count = starts[sizes.len()];
        // SAFETY: a unit stays within its tensor's size, and `sums` has an element for each cube that has elements.
        unsafe {
            square::launch_unchecked(
                &first.client,
                grid(count),
                cube_dim(),
                group.iter().map(buffer).collect(),
                buffer(&sums),
                sizes.iter().copied().collect(),
                starts.into_iter().collect(),
                before,
                sizes.len(),
                UNITS,
                SQUARED,
            );
        }
        before += count;
    }
    let mut sums = to_host(of_gpu::<1>(sums)).into_iter().map(f64::from);
    Some(cubes.into_iter().map(|cubes| sums.by_ref().take(cubes).sum()).collect())
}

fn is_f32(t: &Tensor<1>) -> bool {
    t.dtype() == DType::F32 && t.clone().try_into_primitive::<Cube>().is_ok()
}

/// Returns a dense tensor whose buffer is not shared, for example with another model.
fn writable(t: Tensor<1>) -> CubeTensor {
    let t = dense(primitive(t));
    if t.can_mut() { t } else { t.copy() }
}

fn size(t: &CubeTensor) -> usize {
    t.meta.num_elements()
}

/// Divides tensors into groups of similar length, one launch each: kernels are compiled for a number of tensors.
fn groups<T>(all: &[T], tensor: impl Fn(&T) -> &CubeTensor, buffers: usize, max: usize) -> impl Iterator<Item = &[T]> {
    let max = all.first().map_or(1, |first| per_launch(&tensor(first).client, buffers).min(max));
    let launches = all.len().div_ceil(max).max(1);
    all.chunks(all.len().div_ceil(launches).max(1))
}

/// The number of tensors, with this many buffers each, that a kernel can bind, in addition to one buffer for results and one for
/// its arguments.
fn per_launch(client: &Client, buffers: usize) -> usize {
    ((client.properties().hardware.max_bindings as usize).saturating_sub(2) / buffers).max(1)
}

/// The first cube of each tensor, and the total number of cubes.
fn starts(sizes: &[usize], per_cube: usize) -> Vec<usize> {
    let mut end = 0;
    let ends = sizes.iter().map(|size| {
        end += size.div_ceil(per_cube);
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::{Device, FloatDType};

    use super::*;
    use crate::gpu_backends::any_gpu;
    use crate::ops::{adamw_row, tensor_from_vec};

    /// Sizes below, at and above the capacity of a cube or a unit.
    const SIZES: [usize; 9] = [1, 255, 257, UPDATED, UPDATED + 1, 70_001, SQUARED, SQUARED - 1, 9];
    const STEP: AdamwStep = AdamwStep {
        lr: 1e-2,
        gain1: 0.1,
        gain2: 0.01,
        beta2: 0.99,
        eps: 1e-8,
        keep: 0.999,
        correction1: 0.19,
        correction2_sqrt: 0.141,
        grad_scale: 0.5,
    };

    fn column(size: usize, seed: usize) -> Vec<f32> {
        (0..size).map(|i| ((i * (2 * seed + 1)) as f32 * 0.37 + seed as f32).sin()).collect()
    }

    /// w, m, v and g of each parameter.
    fn parameters(count: usize) -> Vec<[Vec<f32>; 4]> {
        let one = |(t, size): (usize, &usize)| {
            let column = |k: usize| column(*size, 4 * t + k);
            [column(0), column(1), column(2).into_iter().map(|v| v * v).collect(), column(3)]
        };
        SIZES.iter().cycle().take(count).enumerate().map(one).collect()
    }

    fn put(values: &[f32], device: &Device) -> Tensor<1> {
        tensor_from_vec(values.to_vec(), [values.len()], device)
    }

    /// For every number of parameters, three updates match the CPU's, in the same buffers.
    #[test]
    fn adamw_is_that_of_the_cpu() {
        let Some(device) = any_gpu() else { return };
        for count in [1, 9, 26] {
            let mut expected = parameters(count);
            let mut all: Vec<[Tensor<1>; 4]> = expected.iter().map(|p| p.each_ref().map(|values| put(values, &device))).collect();
            let memory = |t: &Tensor<1>| std::ptr::from_ref(primitive(t.clone()).handle.memory.descriptor());
            let before: Vec<_> = all.iter().map(|[w, m, v, _]| [w, m, v].map(memory)).collect();
            for _ in 0..3 {
                for [w, m, v, g] in &mut expected {
                    adamw_row(w, m, v, g, STEP);
                }
                let gradients: Vec<_> = all.iter().map(|[.., g]| g.clone()).collect();
                let updated = adamw(all, STEP).expect("all are f32 on a GPU");
                all = updated.into_iter().zip(gradients).map(|([w, m, v], g)| [w, m, v, g]).collect();
            }
            assert!(all.iter().map(|[w, m, v, _]| [w, m, v].map(memory)).eq(before), "{count}: in other buffers");
            for (t, (all, expected)) in all.into_iter().zip(expected).enumerate() {
                for (tensor, expected) in all.into_iter().zip(expected) {
                    let error =
                        to_host(tensor).iter().zip(&expected).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max);
                    assert!(error < 1e-6, "{count} parameters, number {t}: {error}");
                }
            }
        }
    }

    /// A reference model keeps the weights that its parameters had when it was cloned.
    #[test]
    fn a_clone_keeps_its_values() {
        let Some(device) = any_gpu() else { return };
        let before = parameters(9);
        let all: Vec<[Tensor<1>; 4]> = before.iter().map(|p| p.each_ref().map(|values| put(values, &device))).collect();
        let clones: Vec<_> = all.iter().map(|[w, ..]| w.clone()).collect();
        let updated = adamw(all, STEP).expect("all are f32 on a GPU");
        for ((clone, [old, ..]), [new, ..]) in clones.into_iter().zip(before).zip(updated) {
            assert_eq!(to_host(clone), old);
            assert_ne!(to_host(new), old);
        }
    }

    /// The squares match the CPU's, are the same each time, and show which gradient is not finite.
    #[test]
    fn squares_are_those_of_the_cpu() {
        let Some(device) = any_gpu() else { return };
        for count in [1, 9, 26, 70] {
            let mut values: Vec<Vec<f32>> = parameters(count).into_iter().map(|[.., g]| g).collect();
            let all = |values: &[Vec<f32>]| values.iter().map(|g| put(g, &device)).collect::<Vec<_>>();
            let found = squares(&all(&values)).expect("all are f32 on a GPU");
            assert_eq!(found, squares(&all(&values)).unwrap());
            for (found, g) in found.iter().zip(&values) {
                let expected: f64 = g.iter().map(|g| f64::from(*g).powi(2)).sum();
                assert!((found - expected).abs() <= 1e-6 * expected, "{count}: {found}, not {expected}");
            }
            *values[count / 2].last_mut().unwrap() = f32::NAN;
            let found = squares(&all(&values)).unwrap();
            assert!(found.iter().enumerate().all(|(t, squares)| squares.is_nan() == (t == count / 2)));
        }
    }

    #[test]
    fn other_tensors_are_left_to_burn() {
        let here = || put(&[1.0, 2.0], &Device::flex());
        assert!(squares(&[here()]).is_none() && adamw(vec![[here(), here(), here(), here()]], STEP).is_err());
        let double = || here().cast(FloatDType::F64);
        assert!(squares(&[double()]).is_none() && squares(&[]) == Some(Vec::new()));
        assert!(adamw(Vec::new(), STEP).is_ok_and(|updated| updated.is_empty()));
    }
}
