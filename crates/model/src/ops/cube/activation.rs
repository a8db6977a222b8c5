//! Activations, plain and gated, one unit per element.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use burn::backend::{Cube, TensorMetadata};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, dense, elem, empty_like, grid_of_units};
use crate::ops::activation::ActivationKernels;
use crate::ops::activation_kind::{Act, GELU_CUBE, GELU_SCALE};

/// 1 / (1 + e⁻ˣ)
#[cube]
fn logistic(x: f32) -> f32 {
    1f32 / (1f32 + f32::exp(-x))
}

/// g of f(x) = x·g(x).
#[cube]
fn factor(x: f32, #[comptime] act: Act) -> f32 {
    match act {
        Act::Silu => logistic(x),
        Act::GeluTanh => logistic(x * (1f32 + x * x * comptime!(GELU_CUBE as f32)) * comptime!(2.0 * GELU_SCALE as f32)),
        Act::Gelu => 0.5f32 * (1f32 + Erf::erf(x * FRAC_1_SQRT_2)),
        Act::Relu => {
            let mut one = 0f32;
            if x > 0f32 {
                one = 1f32;
            }
            one
        }
        Act::SquaredRelu => {
            let mut positive = 0f32;
            if x > 0f32 {
                positive = x;
            }
            positive
        }
    }
}

/// f′ = g + x·g′
#[cube]
fn slope(x: f32, #[comptime] act: Act) -> f32 {
    let g = factor(x, act);
    match act {
        Act::Silu => g + x * g * (1f32 - g),
        Act::GeluTanh => {
            let inner = (1f32 + x * x * comptime!(3.0 * GELU_CUBE as f32)) * comptime!(2.0 * GELU_SCALE as f32);
            g + x * g * (1f32 - g) * inner
        }
        Act::Gelu => g + x * f32::exp(-0.5f32 * x * x) * comptime!(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2),
        Act::Relu => g,
        Act::SquaredRelu => 2f32 * g,
    }
}

#[cube(launch)]
fn forward<X: Float>(x: &[X], y: &mut [X], count: usize, #[comptime] act: Act, #[define(X)] _dtype: ElemType) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let value = f32::cast_from(x[ABSOLUTE_POS]);
    y[ABSOLUTE_POS] = X::cast_from(value * factor(value, act));
}

#[cube(launch)]
fn backward<X: Float>(x: &[X], dy: &[X], dx: &mut [X], count: usize, #[comptime] act: Act, #[define(X)] _dtype: ElemType) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    dx[ABSOLUTE_POS] = X::cast_from(f32::cast_from(dy[ABSOLUTE_POS]) * slope(f32::cast_from(x[ABSOLUTE_POS]), act));
}

#[cube(launch)]
fn gated<X: Float>(gate: &[X], up: &[X], y: &mut [X], count: usize, #[comptime] act: Act, #[define(X)] _dtype: ElemType) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let value = f32::cast_from(gate[ABSOLUTE_POS]);
    y[ABSOLUTE_POS] = X::cast_from(value * factor(value, act) * f32::cast_from(up[ABSOLUTE_POS]));
}

#[cube(launch)]
fn gated_backward<X: Float>(
    gate: &[X],
    up: &[X],
    dy: &[X],
    d_gate: &mut [X],
    d_up: &mut [X],
    count: usize,
    #[comptime] act: Act,
    #[define(X)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let value = f32::cast_from(gate[ABSOLUTE_POS]);
    let d = f32::cast_from(dy[ABSOLUTE_POS]);
    d_gate[ABSOLUTE_POS] = X::cast_from(d * f32::cast_from(up[ABSOLUTE_POS]) * slope(value, act));
    d_up[ABSOLUTE_POS] = X::cast_from(d * value * factor(value, act));
}

impl ActivationKernels for Cube {
    fn glu_fwd(gate: CubeTensor, up: CubeTensor, act: Act) -> CubeTensor {
        let [gate, up] = [gate, up].map(dense);
        let (y, count) = (empty_like(&gate), gate.shape().num_elements());
        let dtype = elem(&gate);
        let grid = grid_of_units(count);
        gated::launch(&gate.client, grid, cube_dim(), buffer(&gate), buffer(&up), buffer(&y), count, act, dtype);
        y
    }

    fn glu_bwd(gate: CubeTensor, up: CubeTensor, dy: CubeTensor, act: Act) -> [CubeTensor; 2] {
        let [gate, up, dy] = [gate, up, dy].map(dense);
        let (d_gate, d_up, count) = (empty_like(&gate), empty_like(&gate), gate.shape().num_elements());
        gated_backward::launch(
            &gate.client,
            grid_of_units(count),
            cube_dim(),
            buffer(&gate),
            buffer(&up),
            buffer(&dy),
            buffer(&d_gate),
            buffer(&d_up),
            count,
            act,
            elem(&gate),
        );
        [d_gate, d_up]
    }

    fn act_fwd(x: CubeTensor, act: Act) -> CubeTensor {
        let x = dense(x);
        let (y, count) = (empty_like(&x), x.shape().num_elements());
        forward::launch(&x.client, grid_of_units(count), cube_dim(), buffer(&x), buffer(&y), count, act, elem(&x));
        y
    }

    fn act_bwd(x: CubeTensor, dy: CubeTensor, act: Act) -> CubeTensor {
        let [x, dy] = [x, dy].map(dense);
        let (dx, count) = (empty_like(&x), x.shape().num_elements());
        let grid = grid_of_units(count);
        backward::launch(&x.client, grid, cube_dim(), buffer(&x), buffer(&dy), buffer(&dx), count, act, elem(&x));
        dx
    }
}
