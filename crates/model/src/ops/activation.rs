//! Activations, plain and gated: f(x), and f(gate) · up (Shazeer 2020, <https://arxiv.org/abs/2002.05202>; SwiGLU and GeGLU).
//! All are of the form f(x) = x·g(x), so f′ = g + x·g′.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::activation_kind::{Act, GELU_CUBE, GELU_SCALE};
use super::autodiff::{simple, wide};
use super::{flex::*, simd};

pub(crate) trait ActivationKernels: Backend {
    fn glu_fwd(gate: FloatTensor<Self>, up: FloatTensor<Self>, act: Act) -> FloatTensor<Self> {
        composed_glu_fwd::<Self>(gate, up, act)
    }
    /// Returns the gradients of gate and up.
    fn glu_bwd(gate: FloatTensor<Self>, up: FloatTensor<Self>, dy: FloatTensor<Self>, act: Act) -> [FloatTensor<Self>; 2] {
        composed_glu_bwd::<Self>(gate, up, dy, act)
    }
    fn act_fwd(x: FloatTensor<Self>, act: Act) -> FloatTensor<Self> {
        composed_fwd::<Self>(x, act)
    }
    fn act_bwd(x: FloatTensor<Self>, dy: FloatTensor<Self>, act: Act) -> FloatTensor<Self> {
        composed_bwd::<Self>(x, dy, act)
    }
}

fn mul<B: Backend>(a: &FloatTensor<B>, b: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_mul(a.clone(), b.clone())
}

fn times<B: Backend>(x: FloatTensor<B>, c: f64) -> FloatTensor<B> {
    B::float_mul_scalar(x, c.into())
}

/// 1 + c·x²
fn one_plus<B: Backend>(x: &FloatTensor<B>, c: f64) -> FloatTensor<B> {
    B::float_add_scalar(times::<B>(mul::<B>(x, x), c), 1.0.into())
}

/// g(x)
fn factor<B: Backend>(x: &FloatTensor<B>, act: Act) -> FloatTensor<B> {
    match act {
        Act::Silu => B::sigmoid(x.clone()),
        Act::GeluTanh => B::sigmoid(times::<B>(mul::<B>(x, &one_plus::<B>(x, GELU_CUBE)), 2.0 * GELU_SCALE)),
        Act::Gelu => times::<B>(B::float_add_scalar(B::float_erf(times::<B>(x.clone(), FRAC_1_SQRT_2)), 1.0.into()), 0.5),
        Act::Relu => B::float_sign(B::relu(x.clone())),
        Act::SquaredRelu => B::relu(x.clone()),
    }
}

fn value<B: Backend>(x: FloatTensor<B>, act: Act) -> FloatTensor<B> {
    B::float_mul(factor::<B>(&x, act), x)
}

fn gradient<B: Backend>(x: FloatTensor<B>, dy: FloatTensor<B>, act: Act) -> FloatTensor<B> {
    let g = factor::<B>(&x, act);
    let logistic = || B::float_sub(g.clone(), mul::<B>(&g, &g));
    let slope = match act {
        Act::Silu => logistic(),
        Act::GeluTanh => times::<B>(mul::<B>(&logistic(), &one_plus::<B>(&x, 3.0 * GELU_CUBE)), 2.0 * GELU_SCALE),
        Act::Gelu => times::<B>(B::float_exp(times::<B>(mul::<B>(&x, &x), -0.5)), 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2),
        Act::Relu => return B::float_mul(dy, g),
        Act::SquaredRelu => return B::float_mul(dy, times::<B>(g, 2.0)),
    };
    B::float_mul(dy, B::float_add(g, B::float_mul(x, slope)))
}

fn composed_fwd<B: Backend>(x: FloatTensor<B>, act: Act) -> FloatTensor<B> {
    let dtype = x.dtype();
    B::float_cast(value::<B>(wide::<B>(x), act), dtype.into())
}

fn composed_bwd<B: Backend>(x: FloatTensor<B>, dy: FloatTensor<B>, act: Act) -> FloatTensor<B> {
    let dtype = x.dtype();
    B::float_cast(gradient::<B>(wide::<B>(x), wide::<B>(dy), act), dtype.into())
}

fn composed_glu_fwd<B: Backend>(gate: FloatTensor<B>, up: FloatTensor<B>, act: Act) -> FloatTensor<B> {
    let dtype = gate.dtype();
    B::float_cast(B::float_mul(value::<B>(wide::<B>(gate), act), wide::<B>(up)), dtype.into())
}

fn composed_glu_bwd<B: Backend>(gate: FloatTensor<B>, up: FloatTensor<B>, dy: FloatTensor<B>, act: Act) -> [FloatTensor<B>; 2] {
    let dtype = gate.dtype();
    let [gate, up, dy] = [gate, up, dy].map(wide::<B>);
    let d_up = mul::<B>(&dy, &value::<B>(gate.clone(), act));
    [gradient::<B>(gate, B::float_mul(dy, up), act), d_up].map(|d| B::float_cast(d, dtype.into()))
}

impl ActivationKernels for Flex {
    fn glu_fwd(gate: FlexTensor, up: FlexTensor, act: Act) -> FlexTensor {
        if !all_f32(&[&gate, &up]) {
            return composed_glu_fwd::<Self>(gate, up, act);
        }
        let (gate, up) = (dense(gate), dense(up));
        let (g, u) = (f32s(&gate), f32s(&up));
        assert_eq!(g.len(), u.len());
        let mut y = uninit(g.len());
        let tasks = y.par_chunks_mut(GRAIN).zip(g.par_chunks(GRAIN)).zip(u.par_chunks(GRAIN));
        tasks.for_each(|((y, g), u)| simd::glu(act, g, u, y));
        // SAFETY: gate, up and y have the same length, so every element has been written.
        from_vec(unsafe { written(y) }, gate.shape())
    }

    fn glu_bwd(gate: FlexTensor, up: FlexTensor, dy: FlexTensor, act: Act) -> [FlexTensor; 2] {
        if !all_f32(&[&gate, &up, &dy]) {
            return composed_glu_bwd::<Self>(gate, up, dy, act);
        }
        let (gate, up, mut d) = (dense(gate), dense(up), whole_buffer(dy));
        let (g, u) = (f32s(&gate), f32s(&up));
        let mut d_gate = uninit(g.len());
        let ds = d.storage_mut::<f32>();
        assert_eq!((ds.len(), u.len()), (g.len(), g.len()));
        let tasks = ds.par_chunks_mut(GRAIN).zip(d_gate.par_chunks_mut(GRAIN));
        let tasks = tasks.zip(g.par_chunks(GRAIN)).zip(u.par_chunks(GRAIN));
        tasks.for_each(|(((d, d_gate), g), u)| simd::glu_bwd(act, g, u, d, d_gate));
        // SAFETY: all four have the same length, so every element has been written.
        [from_vec(unsafe { written(d_gate) }, gate.shape()), d]
    }

    fn act_fwd(x: FlexTensor, act: Act) -> FlexTensor {
        if !all_f32(&[&x]) {
            return composed_fwd::<Self>(x, act);
        }
        let x = dense(x);
        let xs = f32s(&x);
        let mut y = uninit(xs.len());
        y.par_chunks_mut(GRAIN).zip(xs.par_chunks(GRAIN)).for_each(|(y, x)| simd::act(act, x, y));
        // SAFETY: x and y have the same length, so every element has been written.
        from_vec(unsafe { written(y) }, x.shape())
    }

    fn act_bwd(x: FlexTensor, dy: FlexTensor, act: Act) -> FlexTensor {
        if !all_f32(&[&x, &dy]) {
            return composed_bwd::<Self>(x, dy, act);
        }
        let (x, mut d) = (dense(x), whole_buffer(dy));
        let tasks = d.storage_mut::<f32>().par_chunks_mut(GRAIN).zip(f32s(&x).par_chunks(GRAIN));
        tasks.for_each(|(d, x)| simd::act_bwd(act, x, d));
        d
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait ActivationOp: Backend {
    fn glu(gate: FloatTensor<Self>, up: FloatTensor<Self>, act: Act) -> FloatTensor<Self>;
    fn act(x: FloatTensor<Self>, act: Act) -> FloatTensor<Self>;
}
super::route::route!(ActivationOp, ActivationKernels {
    fn glu(gate: FloatTensor<Self>, up: FloatTensor<Self>, act: Act) = glu_fwd;
    fn act(x: FloatTensor<Self>, act: Act) = act_fwd;
});

impl<B: ActivationKernels, C: CheckpointStrategy> ActivationOp for Autodiff<B, C> {
    fn glu(gate: FloatTensor<Self>, up: FloatTensor<Self>, act: Act) -> FloatTensor<Self> {
        let forward = |[gate, up]: [_; 2], act: &Act| B::glu_fwd(gate, up, *act);
        simple::<B, C, _, 2, 2>([gate, up], act, forward, |[gate, up], act, dy| B::glu_bwd(gate, up, dy, act))
    }

    fn act(x: FloatTensor<Self>, act: Act) -> FloatTensor<Self> {
        simple::<B, C, _, 1, 1>([x], act, |[x], act| B::act_fwd(x, *act), |[x], act, dy| [B::act_bwd(x, dy, act)])
    }
}

/// act(gate) · up, elementwise, for tensors of equal shape.
pub fn glu<const D: usize>(gate: Tensor<D>, up: Tensor<D>, act: Act) -> Tensor<D> {
    assert_eq!(gate.dims(), up.dims());
    Tensor::from_dispatch(Dispatch::glu(gate.into_dispatch(), up.into_dispatch(), act))
}

/// act(x), elementwise.
pub fn act<const D: usize>(x: Tensor<D>, act: Act) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::act(x.into_dispatch(), act))
}
