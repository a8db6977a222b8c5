//! What every kernel of ours is launched with: dense tensors, buffers for results, and grids of cubes.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// The units of a cube of kernels that go along a row together. A power of two, because sums are halved again and again.
pub const UNITS: usize = 256;

/// Returns the dense tensor behind `t` if it lies on a GPU.
pub fn on_gpu<const D: usize>(t: &Tensor<D>) -> Option<CubeTensor> {
    t.clone().try_into_primitive::<Cube>().ok().map(dense)
}

/// Returns the tensor of a GPU behind `t`.
///
/// # Panics
/// If it lies elsewhere, or in a graph.
pub fn primitive<const D: usize>(t: Tensor<D>) -> CubeTensor {
    t.try_into_primitive::<Cube>().expect("all tensors of an operation lie on one device")
}

/// Makes burn's tensor of one of a GPU.
pub fn of_gpu<const D: usize>(t: CubeTensor) -> Tensor<D> {
    Tensor::from_primitive::<Cube>(t)
}

/// Turns a view into a tensor whose elements follow each other. Copies only strided views.
pub fn dense(t: CubeTensor) -> CubeTensor {
    into_contiguous(t)
}

/// Makes a tensor on the device of `like` whose elements have not been written yet.
pub fn empty(like: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape.into(), dtype)
}

/// Makes a tensor of the shape and dtype of `like` whose elements have not been written yet.
pub fn empty_like(like: &CubeTensor) -> CubeTensor {
    empty(like, like.shape(), like.dtype)
}

/// True if kernels can count the elements, which they do with 32 bits.
pub fn is_countable(t: &CubeTensor) -> bool {
    u32::try_from(t.handle.size() as usize / t.dtype.size()).is_ok()
}

/// True if burn's own operations must do: numbers are f64, or too many for kernels.
pub fn is_left_to_burn(t: &CubeTensor) -> bool {
    t.dtype == DType::F64 || !is_countable(t)
}

/// Returns the buffer of a dense tensor as an argument of a kernel.
///
/// # Panics
/// Unless the tensor [is countable](is_countable): a kernel would write to wrong places.
pub fn buffer(t: &CubeTensor) -> BufferArg {
    let shape = t.shape();
    assert!(
        is_countable(t),
        "a tensor of shape {shape:?} has more than 2^32 elements: make micro-batches, or the cache of generation, smaller"
    );
    t.clone().into_buffer_arg()
}

/// Returns the dtype as kernels name it.
pub fn elem(t: &CubeTensor) -> ElemType {
    burn::backend::cubecl::dtype_to_elem_type(t.dtype)
}

/// Returns a grid of at least `count` cubes: a dimension of a grid has fewer than 65,536. Kernels leave when their cube is past the count.
pub fn grid(count: usize) -> CubeCount {
    const WIDE: usize = 32 * 1024;
    let wide = count.clamp(1, WIDE);
    CubeCount::Static(wide as u32, count.div_ceil(wide).max(1) as u32, 1)
}

/// Returns the grid of a kernel that has one unit for each of `count` elements.
pub fn grid_of_units(count: usize) -> CubeCount {
    grid(count.div_ceil(UNITS))
}

/// Returns the units of a cube that goes along a row of so many numbers: a short row has no work for [`UNITS`], which would wait for each
/// other for nothing.
pub fn units_of(length: usize) -> usize {
    length.next_power_of_two().clamp(32, UNITS)
}

/// Returns a cube of so many units.
pub fn cube_of(units: usize) -> CubeDim {
    CubeDim::new_1d(units as u32)
}

/// Returns a cube of [`UNITS`].
pub fn cube_dim() -> CubeDim {
    cube_of(UNITS)
}
