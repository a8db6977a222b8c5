//! Matrices with padded rows, such as results of matmuls on CUDA, and small buffers from the host.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl::prelude::{BufferArg, CubeElement};
use burn_cubecl::tensor::CubeTensor;

use super::launch::{dense, is_countable};

/// A matrix [rows, width] on a GPU whose rows are dense and begin `stride` elements apart.
pub(crate) struct Rows {
    pub tensor: CubeTensor,
    pub rows: usize,
    pub width: usize,
    pub(crate) stride: usize,
}

impl Rows {
    /// Returns `None` if the matrix is not on a GPU. Copies only if its rows are not dense.
    pub(crate) fn from_tensor(t: Tensor<2>) -> Option<Self> {
        t.try_into_primitive::<Cube>().ok().map(Self::new)
    }

    /// Wraps a matrix. Copies only if its rows are not dense.
    pub(crate) fn new(t: CubeTensor) -> Self {
        let is_dense = |t: &CubeTensor| t.meta.strides()[1] == 1 && t.meta.strides()[0] >= t.meta.shape()[1];
        let tensor = if is_dense(&t) { t } else { dense(t) };
        let (shape, stride) = (tensor.shape(), tensor.meta.strides()[0]);
        let (rows, width) = (shape[0], shape[1]);
        Self { tensor, rows, width, stride }
    }

    /// Views a tensor as a matrix whose rows are its first `dims` dimensions. Copies only if these dimensions, or the elements of
    /// a row, are not contiguous.
    pub(crate) fn over(t: CubeTensor, dims: usize) -> Self {
        let shape = t.shape();
        let in_order = |t: &CubeTensor, from: usize, to: usize| {
            let strides = t.meta.strides();
            (from..to - 1).all(|i| strides[i] == strides[i + 1] * shape[i + 1])
        };
        let (rank, strides) = (shape.num_dims(), t.meta.strides());
        let width = shape[dims..].iter().product();
        let fits = strides[rank - 1] == 1 && strides[dims - 1] >= width && in_order(&t, 0, dims) && in_order(&t, dims, rank);
        let tensor = if fits { t } else { dense(t) };
        let stride = tensor.meta.strides()[dims - 1];
        Self { rows: shape[..dims].iter().product(), width, stride, tensor }
    }

    /// Returns a matrix that may be overwritten: this matrix, or a copy if its buffer is shared.
    pub(crate) fn writable(self) -> Self {
        if self.tensor.can_mut() { self } else { Self::new(self.tensor.copy()) }
    }

    /// The matrix as a kernel argument, including the gaps between its rows.
    ///
    /// # Panics
    /// Unless kernels can [index](is_countable) its elements.
    pub(crate) fn buffer(&self) -> BufferArg {
        assert!(
            is_countable(&self.tensor),
            "{} rows of {} elements are more than 2^32 elements: use smaller micro-batches",
            self.rows,
            self.width
        );
        let len = self.rows.saturating_sub(1) * self.stride + self.width;
        // SAFETY: the allocation reaches to the end of the last row.
        unsafe { BufferArg::from_raw_parts(self.tensor.handle.clone(), len) }
    }
}

/// Copies 4-byte values to the device of `like`.
pub(crate) fn upload<T: CubeElement>(like: &CubeTensor, numbers: &[T], dtype: DType) -> CubeTensor {
    let handle = like.client.create_from_slice(T::as_bytes(numbers));
    CubeTensor::new_contiguous(like.client.clone(), like.device.clone(), [numbers.len()].into(), handle, dtype)
}
