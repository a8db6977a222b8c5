//! Helpers to launch kernels: dense tensors, buffers for results, and grids of cubes.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// The units of a cube whose units share a row. A power of two, because sums are halved repeatedly.
pub(crate) const UNITS: usize = 256;

/// Returns the dense tensor behind `t` if it is on a GPU.
pub(crate) fn on_gpu<const D: usize>(t: &Tensor<D>) -> Option<CubeTensor> {
    t.clone().try_into_primitive::<Cube>().ok().map(dense)
}

/// Returns the GPU tensor behind `t`.
///
/// # Panics
/// If the tensor is not on a GPU, or is in a graph.
pub(crate) fn primitive<const D: usize>(t: Tensor<D>) -> CubeTensor {
    t.try_into_primitive::<Cube>().expect("all tensors of an operation lie on one device")
}

/// Wraps a GPU tensor as burn's tensor.
pub(crate) fn of_gpu<const D: usize>(t: CubeTensor) -> Tensor<D> {
    Tensor::from_primitive::<Cube>(t)
}

/// Makes the elements of a view contiguous. Copies only strided views.
pub(crate) fn dense(t: CubeTensor) -> CubeTensor {
    into_contiguous(t)
}

/// Creates a tensor with unspecified contents on the device of `like`.
pub(crate) fn empty(like: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape.into(), dtype)
}

/// Creates a tensor with unspecified contents and the shape and dtype of `like`.
pub(crate) fn empty_like(like: &CubeTensor) -> CubeTensor {
    empty(like, like.shape(), like.dtype)
}

/// True if kernels can index all elements with 32 bits.
pub(crate) fn is_countable(t: &CubeTensor) -> bool {
    u32::try_from(t.handle.size() as usize / t.dtype.size()).is_ok()
}

/// True if burn's own operations are used: the tensor is f64, or has too many elements for kernels.
pub(crate) fn is_left_to_burn(t: &CubeTensor) -> bool {
    t.dtype == DType::F64 || !is_countable(t)
}

/// Returns the buffer of a dense tensor as a kernel argument.
///
/// # Panics
/// Unless the tensor [is countable](is_countable): a kernel would write to wrong addresses.
pub(crate) fn buffer(t: &CubeTensor) -> BufferArg {
    let shape = t.shape();
    assert!(
        is_countable(t),
        "a tensor of shape {shape:?} has more than 2^32 elements: use smaller micro-batches or a smaller KV cache"
    );
    t.clone().into_buffer_arg()
}

/// Returns the dtype as a kernel's type.
pub(crate) fn elem(t: &CubeTensor) -> ElemType {
    burn::backend::cubecl::dtype_to_elem_type(t.dtype)
}

/// Returns a grid of at least `count` cubes. A dimension of a grid is limited to 65,535, so kernels exit in cubes past the count.
pub(crate) fn grid(count: usize) -> CubeCount {
    const WIDE: usize = 32 * 1024;
    let wide = count.clamp(1, WIDE);
    CubeCount::Static(wide as u32, count.div_ceil(wide).max(1) as u32, 1)
}

/// Returns the row of this cube in a kernel with one cube per row; ends the cubes past the last row.
#[cube]
pub(crate) fn row_of_cube(rows: usize) -> usize {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    row
}

/// Returns the grid of a kernel with one unit for each of `count` elements.
pub(crate) fn grid_of_units(count: usize) -> CubeCount {
    grid(count.div_ceil(UNITS))
}

/// Returns the units of a cube for a row of `length` elements. A short row has too little work for [`UNITS`], which would only
/// wait for each other.
pub(crate) fn units_of(length: usize) -> usize {
    length.next_power_of_two().clamp(32, UNITS)
}

/// Returns a cube of this many units.
pub(crate) fn cube_of(units: usize) -> CubeDim {
    CubeDim::new_1d(units as u32)
}

/// Returns a cube of [`UNITS`].
pub(crate) fn cube_dim() -> CubeDim {
    cube_of(UNITS)
}
