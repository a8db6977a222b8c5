//! The gradient of a bias. The matmuls are burn's.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::Shape;
use burn_cubecl::tensor::CubeTensor;

use super::columns::sum_of_rows;
use crate::ops::linear::LinearKernels;

impl LinearKernels for Cube {
    fn bias_bwd(dy: CubeTensor) -> CubeTensor {
        let (out, dtype) = (dy.shape()[1], dy.dtype);
        Self::float_reshape(sum_of_rows(dy, dtype), Shape::from([out]))
    }
}
