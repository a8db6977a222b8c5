//! A forward pass and its layers: projections with their adapters, and norms.

use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Tensor};

use super::config::{DecoderConfig, NormKind};
use super::low_precision_weights::LowPrecisionWeights;
use super::ops::{cast, fused, layer_norm, linear, linear_cached, linear_frozen, linear_rows, rms_norm};

#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Param<Tensor<2>>,
    pub bias: Option<Param<Tensor<1>>>,
    pub lora: Option<Lora>,
}

/// A low-rank term added to a projection: scale · (x·aᵀ)·bᵀ (see [`super::lora`]).
#[derive(Module, Debug)]
pub struct Lora {
    /// [r, in]
    pub a: Param<Tensor<2>>,
    /// [out, r]
    pub b: Param<Tensor<2>>,
    pub scale: f64,
}

#[derive(Module, Debug)]
pub struct Norm {
    pub weight: Param<Tensor<1>>,
    pub bias: Option<Param<Tensor<1>>>,
}

/// The inputs that every block of one forward pass shares.
pub struct Pass<'a> {
    /// cos and sin [n, d/2]; `None` for learned positions.
    pub rotation: Option<(Tensor<2>, Tensor<2>)>,
    pub config: &'a DecoderConfig,
    /// The dtype of matmuls and attention.
    pub dtype: FloatDType,
    /// Copies of parameters in `dtype`, if several passes share them.
    pub(crate) low_precision: Option<&'a LowPrecisionWeights>,
    /// True if a row's result must not depend on the other rows, as in generation.
    pub(crate) independent_rows: bool,
}

impl Pass<'_> {
    pub fn down<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        cast(x, self.dtype)
    }

    pub fn up<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        cast(x, FloatDType::F32)
    }

    pub fn linear(&self, x: Tensor<2>, layer: &Linear) -> Tensor<2> {
        let bias = layer.bias.as_ref().map(|bias| match self.shared_copy(bias, &x).filter(|_| !bias.val().is_require_grad()) {
            Some(bias) => bias,
            None => self.down(bias.val()),
        });
        self.product(x, layer, bias)
    }

    /// Multiplies x [n, in] by the layer's matrix, with its adapter and this bias -> [n, out].
    pub fn product(&self, x: Tensor<2>, layer: &Linear, bias: Option<Tensor<1>>) -> Tensor<2> {
        match &layer.lora {
            Some(lora) => self.by(x.clone(), &layer.weight, bias) + self.lora(x, lora),
            None => self.by(x, &layer.weight, bias),
        }
    }

    pub fn lora(&self, x: Tensor<2>, lora: &Lora) -> Tensor<2> {
        self.by(self.by(x, &lora.a, None) * lora.scale, &lora.b, None)
    }

    /// Multiplies x [n, in] by a matrix [out, in], with this bias -> [n, out].
    fn by(&self, x: Tensor<2>, matrix: &Param<Tensor<2>>, bias: Option<Tensor<1>>) -> Tensor<2> {
        let (shared_copy, matrix) = (self.shared_copy(matrix, &x), matrix.val());
        match (self.independent_rows, matrix.is_require_grad(), shared_copy) {
            (false, true, Some(shared_copy)) => linear_cached(x, matrix, shared_copy, bias),
            (false, true, None) => linear(x, self.down(matrix), bias),
            (is_alone, _, shared_copy) => {
                let matrix = shared_copy.unwrap_or_else(|| self.down(matrix));
                if is_alone { linear_rows(x, matrix, bias) } else { linear_frozen(x, matrix, bias) }
            }
        }
    }

    /// The copy of a parameter that passes share, without gradients, for a matmul with x.
    fn shared_copy<const D: usize>(&self, parameter: &Param<Tensor<D>>, x: &Tensor<2>) -> Option<Tensor<D>> {
        let shared_copy = self.low_precision?.get(parameter, self.dtype);
        Some(if x.is_autodiff() { Tensor::from_inner(shared_copy) } else { shared_copy })
    }

    /// Normalises over the last dimension, in f32.
    pub fn norm<const D: usize>(&self, x: Tensor<D>, norm: &Norm) -> Tensor<D> {
        let (weight, eps) = (norm.weight.val(), self.config.norm_eps);
        match (self.config.norm, &norm.bias) {
            (NormKind::Layer, Some(bias)) => layer_norm(x, weight, bias.val(), eps),
            (NormKind::Rms { offset }, _) => rms_norm(x, weight, eps, offset),
            (NormKind::Layer, None) => unreachable!("a LayerNorm is built with its bias"),
        }
    }

    /// Returns x + y, and its norm in `dtype`, if one kernel can compute both.
    pub fn norm_of_sum(
        &self,
        x: &Tensor<2>,
        y: Option<&Tensor<2>>,
        norm: &Norm,
        dtype: FloatDType,
    ) -> Option<(Tensor<2>, Tensor<2>)> {
        fused::norm_of_sum(x, y, &self.weights(norm), dtype)
    }

    pub fn weights(&self, norm: &Norm) -> fused::FusedNorm {
        let offset = if let NormKind::Rms { offset } = self.config.norm { offset } else { 0.0 };
        let bias = norm.bias.as_ref().map(|bias| bias.val());
        fused::FusedNorm { weight: norm.weight.val(), bias, eps: self.config.norm_eps, offset }
    }
}
