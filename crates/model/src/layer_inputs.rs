//! Inputs of each layer in addition to the residual stream (Gemma 4). Embedded tokens then have more columns: after the hidden
//! size follow the token's row of a second table, `width` columns for each layer.

use burn::tensor::{Device, Tensor};

use super::causal_lm::CausalLm;
use super::decoder::{Block, Decoder};
use super::ops::{act, index};
use super::pass::{Linear, Pass};

/// The name of the table.
pub(crate) const TABLE: &str = "model.embed_tokens_per_layer.weight";

impl CausalLm {
    /// Appends the rows of the second table to embedded tokens [ids, h], if the model has one.
    pub(super) fn with_layer_rows(&self, x: Tensor<2>, ids: &[u32], device: &Device) -> Tensor<2> {
        let Some(table) = &self.net.model.embed_tokens_per_layer else { return x };
        let rows = table.weight.val().inner().select(0, index(ids.iter().map(|&id| id as usize), device));
        Tensor::cat(vec![x, rows * self.layer_rows_scale()], 1)
    }

    /// Factor on the rows of the second table.
    pub(super) fn layer_rows_scale(&self) -> f32 {
        self.config.layer_inputs.map_or(1.0, |inputs| (inputs.width as f32).sqrt())
    }
}

impl Decoder {
    /// The residual stream [n, h] of embedded tokens: all but the rows of the second table.
    pub(crate) fn residual_columns(&self, embedded: Tensor<2>) -> Tensor<2> {
        match &self.model.per_layer_model_projection {
            Some(projection) => embedded.narrow(1, 0, projection.weight.dims()[1]),
            None => embedded,
        }
    }

    /// The rows of the second table [n, layers · width] in embedded tokens, if the model has one.
    pub(crate) fn row_columns(&self, embedded: &Tensor<2>) -> Option<Tensor<2>> {
        let [width, h] = self.model.per_layer_model_projection.as_ref()?.weight.dims();
        Some(embedded.clone().narrow(1, h, width))
    }

    /// Returns the inputs of all layers [n, layers · width], f32, from embedded tokens: the mean of their normalised projection and
    /// the rows of the second table, times √2.
    pub(crate) fn layer_inputs(&self, embedded: &Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        let (rows, trunk) = (self.row_columns(embedded)?, &self.model);
        let (projection, norm) = (trunk.per_layer_model_projection.as_ref()?, trunk.per_layer_projection_norm.as_ref()?);
        let ([n, all], width) = (rows.dims(), pass.config.layer_inputs?.width);
        let x = pass.down(self.residual_columns(embedded.clone()));
        let y = pass.up(pass.linear(x, projection)) * (pass.config.hidden_size as f32).powf(-0.5);
        let y = pass.norm(y.reshape([n, all / width, width]), norm).reshape([n, all]);
        Some((y + rows) * std::f32::consts::FRAC_1_SQRT_2)
    }
}

impl Block {
    /// The projections of the layer's own input, by their names in a block.
    pub(crate) fn input_projections(&self) -> impl Iterator<Item = (&'static str, &Linear)> {
        let all = [("per_layer_input_gate", &self.per_layer_input_gate), ("per_layer_projection", &self.per_layer_projection)];
        all.into_iter().filter_map(|(name, linear)| Some((name, linear.as_ref()?)))
    }

    /// The part of the residual stream x [n, h] that comes from the layer's own input: a projection of the input, gated by x, before its norm.
    pub(crate) fn of_layer_input(&self, x: Tensor<2>, input: &Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        let (gate, projection) = (self.per_layer_input_gate.as_ref()?, self.per_layer_projection.as_ref()?);
        let gated = act(pass.linear(x, gate), pass.config.activation) * pass.down(input.clone());
        Some(pass.linear(gated, projection))
    }
}
