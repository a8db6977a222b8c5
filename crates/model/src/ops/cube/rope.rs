//! The rotation of queries and keys, one unit per element.

use burn::backend::{Cube, TensorMetadata};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, dense, elem, empty_like, grid_of_units};
use crate::ops::rope::RopeKernels;

/// Returns element `i` of the head that begins at `start` in `x`, rotated by the angles that begin at `angles` in cos and sin.
/// Elements from 2·half on are unchanged.
#[cube]
pub(crate) fn rotated<X: Float, A: Float>(
    x: &[X],
    cos: &[A],
    sin: &[A],
    start: usize,
    angles: usize,
    i: usize,
    half: usize,
    sign: f32,
) -> f32 {
    let own = f32::cast_from(x[start + i]);
    let mut value = own;
    if i < half {
        let other = f32::cast_from(x[start + i + half]);
        value = own * f32::cast_from(cos[angles + i]) - other * f32::cast_from(sin[angles + i]) * sign;
    } else if i < 2 * half {
        let other = f32::cast_from(x[start + i - half]);
        value = own * f32::cast_from(cos[angles + i - half]) + other * f32::cast_from(sin[angles + i - half]) * sign;
    }
    value
}

#[cube(launch)]
fn rotate<X: Float, A: Float>(
    x: &[X],
    cos: &[A],
    sin: &[A],
    y: &mut [X],
    count: usize,
    width: usize,
    d: usize,
    half: usize,
    sign: f32,
    #[define(X, A)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let i = ABSOLUTE_POS % d;
    let angles = ABSOLUTE_POS / width * half;
    y[ABSOLUTE_POS] = X::cast_from(rotated::<X, A>(x, cos, sin, ABSOLUTE_POS - i, angles, i, half, sign));
}

impl RopeKernels for Cube {
    fn rope_fwd(x: CubeTensor, cos: CubeTensor, sin: CubeTensor, inverse: bool) -> CubeTensor {
        let [x, cos, sin] = [x, cos, sin].map(dense);
        let (y, shape, half) = (empty_like(&x), x.shape(), cos.shape()[1]);
        let (count, width, d) = (shape.num_elements(), shape[1] * shape[2], shape[2]);
        let sign = if inverse { -1.0 } else { 1.0 };
        rotate::launch(
            &x.client,
            grid_of_units(count),
            cube_dim(),
            buffer(&x),
            buffer(&cos),
            buffer(&sin),
            buffer(&y),
            count,
            width,
            d,
            half,
            sign,
            [elem(&x), elem(&cos)],
        );
        y
    }
}
