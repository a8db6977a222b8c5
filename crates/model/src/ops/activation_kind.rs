//! The activation functions, and constants that their kernels share.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// x·σ(x); `silu`, `swish`
    Silu,
    /// x·Φ(x) by its tanh approximation (Hendrycks & Gimpel 2016, <https://arxiv.org/abs/1606.08415>); `gelu_pytorch_tanh`,
    /// `gelu_new`
    GeluTanh,
    /// x·Φ(x); `gelu`
    Gelu,
    /// max(x, 0); `relu`
    Relu,
    /// max(x, 0)²; `relu2`
    SquaredRelu,
}

/// Constants of u(x) = √(2/π)·(x + 0.044715·x³), where GELU's tanh form is x·σ(2u) = x·(1 + tanh u) / 2.
pub(super) const GELU_CUBE: f64 = 0.044_715;
pub(super) const GELU_SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
