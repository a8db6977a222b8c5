//! A forward pass, and the layers that it runs wherever they stand: projections with their adapters, and norms.

use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Tensor};

use super::config::{DecoderConfig, NormKind};
use super::ops::{cast, fused, layer_norm, linear, linear_frozen, linear_rows, rms_norm};

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
    /// cos and sin [n, d/2]; `None` where positions are learned.
    pub rotation: Option<(Tensor<2>, Tensor<2>)>,
    pub config: &'a DecoderConfig,
    /// The dtype of matrix products and attention.
    pub dtype: FloatDType,
    /// True if a row must come out the same whatever rows are beside it, as in generation.
    pub independent_rows: bool,
}

impl Pass<'_> {
    pub fn down<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        cast(x, self.dtype)
    }

    pub fn up<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        cast(x, FloatDType::F32)
    }

    pub fn linear(&self, x: Tensor<2>, layer: &Linear) -> Tensor<2> {
        self.product(x, layer, layer.bias.as_ref().map(|bias| self.down(bias.val())))
    }

    /// x [n, in] by the layer's matrix, with its adapter and this bias -> [n, out].
    pub fn product(&self, x: Tensor<2>, layer: &Linear, bias: Option<Tensor<1>>) -> Tensor<2> {
        let weight = layer.weight.val();
        let (frozen, weight) = (!weight.is_require_grad(), self.down(weight));
        let product = match (self.independent_rows, frozen) {
            (true, _) => linear_rows,
            (false, true) => linear_frozen,
            (false, false) => linear,
        };
        match &layer.lora {
            Some(lora) => product(x.clone(), weight, bias) + self.lora(x, lora),
            None => product(x, weight, bias),
        }
    }

    pub fn lora(&self, x: Tensor<2>, lora: &Lora) -> Tensor<2> {
        let product = if self.independent_rows { linear_rows } else { linear };
        let inner = product(x, self.down(lora.a.val()), None) * lora.scale;
        product(inner, self.down(lora.b.val()), None)
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

    /// Returns x + y and the norm of that in `dtype`, where one kernel does both.
    pub fn norm_of_sum(
        &self,
        x: &Tensor<2>,
        y: Option<&Tensor<2>>,
        norm: &Norm,
        dtype: FloatDType,
    ) -> Option<(Tensor<2>, Tensor<2>)> {
        fused::norm_of_sum(x, y, &self.weights(norm), dtype)
    }

    pub fn weights(&self, norm: &Norm) -> fused::Norm {
        let offset = if let NormKind::Rms { offset } = self.config.norm { offset } else { 0.0 };
        let bias = norm.bias.as_ref().map(|bias| bias.val());
        fused::Norm { weight: norm.weight.val(), bias, eps: self.config.norm_eps, offset }
    }
}

impl Linear {
    pub fn cast(&mut self, dtype: FloatDType) {
        self.weight = Param::from_tensor(cast(self.weight.val(), dtype));
        self.bias = self.bias.as_ref().map(|bias| Param::from_tensor(cast(bias.val(), dtype)));
        self.lora.iter_mut().for_each(|lora| lora.cast(dtype));
    }
}

impl Lora {
    pub fn cast(&mut self, dtype: FloatDType) {
        self.a = Param::from_tensor(cast(self.a.val(), dtype));
        self.b = Param::from_tensor(cast(self.b.val(), dtype));
    }
}
