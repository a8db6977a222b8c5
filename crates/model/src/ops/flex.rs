//! Converts tensors of burn's `flex` backend to slices and back without copies, and multiplies matrices in slices.

use burn::backend::{
    Flex,
    flex::{FlexTensor, Layout},
};
use burn::tensor::{Bytes, DType, Device, FloatDType, Int, Shape, Tensor, TensorData};
use gemm::Parallelism;
use rayon::prelude::*;

use super::simd;
pub(super) use super::uninit::{Uninit, uninit, written, written_slice};

/// Elements per parallel task: large enough to hide rayon's overhead of about 5 µs.
pub(super) const GRAIN: usize = 16 * 1024;

/// Returns the contiguous f32 view of a `flex` tensor, or `None` for another backend or dtype. Copies only strided views.
pub fn flex_f32<const D: usize>(t: &Tensor<D>) -> Option<FlexTensor> {
    let t = t.clone().try_into_primitive::<Flex>().ok()?;
    (t.dtype() == DType::F32).then(|| dense(t))
}

/// Creates a tensor on `device` from host values in row-major order.
pub fn tensor_from_vec<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Returns the tensor in `dtype`; unchanged if it has this dtype.
pub fn cast<const D: usize>(t: Tensor<D>, dtype: FloatDType) -> Tensor<D> {
    if t.dtype() == DType::from(dtype) { t } else { t.cast(dtype) }
}

/// Creates a tensor of indices.
pub fn index(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.map(|v| v as i64).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), device)
}

/// Makes a view contiguous, so that [`f32s`] succeeds. Copies only strided views.
pub(super) fn dense(t: FlexTensor) -> FlexTensor {
    if t.is_contiguous() { t } else { t.to_contiguous() }
}

/// The elements of a `dense` f32 tensor.
pub fn f32s(t: &FlexTensor) -> &[f32] {
    t.as_slice::<f32>().expect("contiguous f32")
}

pub(super) fn from_vec(v: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(v), Layout::contiguous(shape), DType::F32)
}

/// Returns a contiguous tensor that spans its whole buffer, so that `storage_mut` may overwrite all of it. `storage_mut` first
/// copies a shared buffer.
pub fn whole_buffer(t: FlexTensor) -> FlexTensor {
    let spans_buffer = t.is_contiguous() && t.layout().start_offset() == 0 && t.bytes().len() == 4 * t.layout().num_elements();
    if spans_buffer { t } else { t.to_contiguous() }
}

/// Returns sum + x on all threads (burn uses one), in place if the buffer of `sum` is not shared.
///
/// # Panics
/// If the tensors are not on one device.
pub fn add(sum: Tensor<1>, x: Tensor<1>) -> Tensor<1> {
    let Some(x) = flex_f32(&x).filter(|_| sum.dtype() == DType::F32) else { return sum + x };
    let mut sum = whole_buffer(sum.try_into_primitive::<Flex>().expect("both on one device"));
    let rows = sum.storage_mut::<f32>().par_chunks_mut(4 * GRAIN).zip(f32s(&x).par_chunks(4 * GRAIN));
    rows.for_each(|(sum, x)| simd::axpy(1.0, x, sum));
    Tensor::from_primitive::<Flex>(sum)
}

pub(crate) fn all_f32(ts: &[&FlexTensor]) -> bool {
    ts.iter().all(|t| t.dtype() == DType::F32)
}

/// The number of multiplications below which a second thread does not pay off.
const SMALL: usize = 192 * 192 * 192;

/// The threading of a matmul.
pub(super) fn threads(m: usize, n: usize, k: usize) -> Parallelism {
    if m * n * k < SMALL { Parallelism::None } else { Parallelism::Rayon(0) }
}

/// The strides of a matrix in a slice: (row stride, column stride).
pub(crate) type Strides = (usize, usize);

/// Computes c (m×n) = a (m×k) · b (k×n), or c += a · b with `accumulate`.
#[expect(clippy::too_many_arguments, reason = "three matrices with their strides")]
pub(super) fn matmul(
    (m, n, k): (usize, usize, usize),
    c: &mut [f32],
    c_strides: Strides,
    accumulate: bool,
    a: &[f32],
    a_strides: Strides,
    b: &[f32],
    b_strides: Strides,
    threads: Parallelism,
) {
    assert!(spans(m, n, c_strides, c) && spans(m, k, a_strides, a) && spans(k, n, b_strides, b));
    // SAFETY: the assertion keeps every element gemm touches inside the three slices, and `c` is borrowed mutably.
    unsafe { matmul_ptr((m, n, k), c.as_mut_ptr(), c_strides, accumulate, a.as_ptr(), a_strides, b.as_ptr(), b_strides, threads) }
}

/// Computes a (m×k) · b (k×n) -> [m, n], row-major.
pub(super) fn product(
    (m, n, k): (usize, usize, usize),
    (a, a_strides): (&[f32], Strides),
    (b, b_strides): (&[f32], Strides),
    threads: Parallelism,
) -> Vec<f32> {
    let mut c = uninit(m * n);
    product_to((m, n, k), &mut c, (a, a_strides), (b, b_strides), threads);
    // SAFETY: `product_to` has written all m·n elements.
    unsafe { written(c) }
}

/// Computes [`product`] into the beginning of `c`, and returns these elements.
pub(crate) fn product_to<'c>(
    (m, n, k): (usize, usize, usize),
    c: &'c mut Uninit,
    (a, a_strides): (&[f32], Strides),
    (b, b_strides): (&[f32], Strides),
    threads: Parallelism,
) -> &'c mut [f32] {
    let c = &mut c[..m * n];
    assert!(spans(m, k, a_strides, a) && spans(k, n, b_strides, b));
    let to = c.as_mut_ptr().cast();
    // SAFETY: the assertion keeps every element that gemm reads inside a and b; c has m·n elements and is borrowed mutably.
    unsafe { matmul_ptr((m, n, k), to, (n, 1), false, a.as_ptr(), a_strides, b.as_ptr(), b_strides, threads) };
    // SAFETY: without `accumulate`, gemm writes all m·n elements.
    unsafe { written_slice(c) }
}

/// True if a matrix of this shape and strides is within the slice.
fn spans(rows: usize, columns: usize, strides: Strides, slice: &[f32]) -> bool {
    rows == 0 || columns == 0 || (rows - 1) * strides.0 + (columns - 1) * strides.1 < slice.len()
}

/// [`matmul`] on pointers, for tasks that write disjoint blocks of one buffer.
///
/// # Safety
/// All elements addressed by the shapes and strides must be valid (elements of `c` may be uninitialised unless `accumulate`), and
/// no other task may access the elements of `c` meanwhile.
#[expect(clippy::too_many_arguments, reason = "three matrices with their strides")]
pub(crate) unsafe fn matmul_ptr(
    (m, n, k): (usize, usize, usize),
    c: *mut f32,
    c_strides: Strides,
    accumulate: bool,
    a: *const f32,
    a_strides: Strides,
    b: *const f32,
    b_strides: Strides,
    threads: Parallelism,
) {
    let s = |s: Strides| (s.1 as isize, s.0 as isize);
    let ((c_cs, c_rs), (a_cs, a_rs), (b_cs, b_rs)) = (s(c_strides), s(a_strides), s(b_strides));
    // SAFETY: promised by the caller.
    unsafe {
        gemm::gemm(m, n, k, c, c_cs, c_rs, accumulate, a, a_cs, a_rs, b, b_cs, b_rs, 1.0, 1.0, false, false, false, threads)
    }
}

/// Returns the values of a tensor, row-major, on the host.
///
/// # Panics
/// If the tensor is not f32: parameters and activations of this crate always are.
pub fn to_host<const D: usize>(t: Tensor<D>) -> Vec<f32> {
    t.into_data().try_into_vec::<f32>().expect("f32 tensor")
}
