//! A forward pass and its layers: projections with their adapters, and norms.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Tensor};

use super::config::{DecoderConfig, NormKind};
use super::experts::RouterLog;
use super::low_precision_weights::LowPrecisionWeights;
use super::matrix::Matrix;
use super::ops::{
    Groups, cast, fused, grouped, grouped_cached, grouped_frozen, grouped_rows, layer_norm, linear, linear_cached, linear_frozen,
    linear_nf4, linear_rows, rms_norm,
};

#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Matrix,
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
    /// `None` if the family's norms have no parameters.
    pub weight: Option<Param<Tensor<1>>>,
    pub bias: Option<Param<Tensor<1>>>,
}

/// cos and sin of each row, [n, d/2] each.
pub(crate) type Rotation = (Tensor<2>, Tensor<2>);

/// The inputs that every block of one forward pass shares.
#[derive(Clone)]
pub struct Pass<'a> {
    /// The rotation of a layer's queries and keys; `None` for learned positions.
    pub rotation: Option<Rotation>,
    /// The rotation of layers with a window, if it differs.
    pub(crate) local_rotation: Option<Rotation>,
    /// The layer's own input, [n, width], f32; see [`super::layer_inputs`].
    pub(crate) layer_input: Option<Tensor<2>>,
    /// Factor on the rotated queries of each row, [n, 1, 1].
    pub(crate) query_scale: Option<Tensor<3>>,
    pub config: &'a DecoderConfig,
    /// The dtype of matmuls and attention.
    pub dtype: FloatDType,
    /// Copies of parameters in `dtype`, if several passes share them.
    pub(crate) low_precision: Option<&'a LowPrecisionWeights>,
    /// True if a row's result must not depend on the other rows, as in generation.
    pub(crate) independent_rows: bool,
    /// Keeps the routing of mixtures of experts.
    pub(crate) router_log: Option<&'a RouterLog>,
}

impl Pass<'_> {
    /// Returns the inputs of one layer, with the rotation of that layer.
    pub(crate) fn at_layer(&self, layer: usize) -> Self {
        let is_local = self.config.windows[layer].is_some() && self.local_rotation.is_some();
        let rotation = if is_local { &self.local_rotation } else { &self.rotation };
        Self { rotation: rotation.clone().filter(|_| self.config.rotates[layer]), ..self.clone() }
    }

    /// The columns of a layer in the inputs of all layers, [n, layers · width] -> [n, width].
    pub(crate) fn input_of(&self, layer: usize, inputs: &Tensor<2>) -> Option<Tensor<2>> {
        let width = self.config.layer_inputs?.width;
        Some(inputs.clone().narrow(1, layer * width, width))
    }

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
        let by = |x: Tensor<2>| match &layer.weight {
            Matrix::Float(matrix) => self.by(x, matrix, bias),
            Matrix::Nf4(matrix) => linear_nf4(x, matrix, bias),
        };
        match &layer.lora {
            Some(lora) => by(x.clone()) + self.lora(x, lora),
            None => by(x),
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

    /// Multiplies x [n, in] by a layer's matrix in f32, for every dtype of the pass; the layer has no adapter.
    pub(crate) fn linear_f32(&self, x: Tensor<2>, layer: &Linear) -> Tensor<2> {
        let (x, bias) = (self.up(x), layer.bias.as_ref().map(|bias| bias.val()));
        let matrix = match &layer.weight {
            Matrix::Float(matrix) => matrix.val(),
            Matrix::Nf4(matrix) => return linear_nf4(x, matrix, bias),
        };
        match (self.independent_rows, matrix.is_require_grad()) {
            (true, _) => linear_rows(x, matrix, bias),
            (false, true) => linear(x, matrix, bias),
            (false, false) => linear_frozen(x, matrix, bias),
        }
    }

    /// Multiplies the rows x [places, in] of each expert by its matrix of [experts, out, in] -> [places, out].
    pub(crate) fn grouped(&self, x: Tensor<2>, matrices: &Param<Tensor<3>>, groups: &Arc<Groups>) -> Tensor<2> {
        let (shared_copy, matrices) = (self.shared_copy(matrices, &x), matrices.val());
        match (self.independent_rows, matrices.is_require_grad(), shared_copy) {
            (false, true, Some(shared_copy)) => grouped_cached(x, matrices, shared_copy, groups),
            (false, true, None) => grouped(x, self.down(matrices), groups),
            (is_alone, _, shared_copy) => {
                let matrices = shared_copy.unwrap_or_else(|| self.down(matrices));
                if is_alone { grouped_rows(x, matrices, groups) } else { grouped_frozen(x, matrices, groups) }
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
        let constant = |value: f32| Tensor::full([x.dims()[D - 1]], value, &x.device());
        let weight = norm.weight.as_ref().map_or_else(|| constant(1.0), |weight| weight.val());
        let bias = || norm.bias.as_ref().map_or_else(|| constant(0.0), |bias| bias.val());
        let eps = self.config.norm_eps;
        match self.config.norm {
            NormKind::Layer | NormKind::LayerWithoutBias => {
                let bias = bias();
                layer_norm(x, weight, bias, eps)
            }
            NormKind::Rms { offset } => rms_norm(x, weight, eps, offset),
            NormKind::PlainRms => rms_norm(x, weight, eps, 0.0),
        }
    }

    /// Divides by the root mean square over the last dimension, in f32.
    pub(crate) fn plain_norm<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let weight = Tensor::full([x.dims()[D - 1]], 1.0, &x.device());
        rms_norm(x, weight, self.config.norm_eps, 0.0)
    }

    /// Normalises what a block adds to the residual stream, in f32, if the family does.
    pub(crate) fn normed_result(&self, y: Tensor<2>, norm: Option<&Norm>) -> Tensor<2> {
        match norm {
            Some(norm) => self.norm(self.up(y), norm),
            None => y,
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
        if !fused::available(x) {
            return None;
        }
        fused::norm_of_sum(x, y, &self.weights(norm, x), dtype)
    }

    /// The parameters of a norm for kernels, on the device of x, whose last dimension it normalises.
    pub fn weights<const D: usize>(&self, norm: &Norm, x: &Tensor<D>) -> fused::FusedNorm {
        let offset = if let NormKind::Rms { offset } = self.config.norm { offset } else { 0.0 };
        let constant = |value: f32| Tensor::full([x.dims()[D - 1]], value, &x.device());
        let weight = norm.weight.as_ref().map_or_else(|| constant(1.0), |weight| weight.val());
        let without_bias = || (self.config.norm == NormKind::LayerWithoutBias).then(|| constant(0.0));
        let bias = norm.bias.as_ref().map(|bias| bias.val()).or_else(without_bias);
        fused::FusedNorm { weight, bias, eps: self.config.norm_eps, offset }
    }
}
