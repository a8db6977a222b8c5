//! The MLP of a block.

use burn::module::Module;
use burn::tensor::Tensor;

use super::ops::{act, glu};
use super::pass::{Linear, Lora, Pass};

#[derive(Module, Debug)]
pub struct Mlp {
    /// `None` if the MLP has no gate.
    pub gate_proj: Option<Linear>,
    pub up_proj: Linear,
    pub down_proj: Linear,
    /// The adapter of gate and up together, in this order, if files hold them as one matrix.
    pub gate_up_lora: Option<Lora>,
}

impl Mlp {
    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        let (kind, width) = (pass.config.activation, self.up_proj.weight.dims()[0]);
        let together = self.gate_up_lora.as_ref().map(|lora| pass.lora(x.clone(), lora));
        let product = |x: Tensor<2>, layer: &Linear, first: usize| match &together {
            Some(both) => pass.linear(x, layer) + both.clone().narrow(1, first, width),
            None => pass.linear(x, layer),
        };
        let factors = pass.config.mlp_factors;
        let scaled = |y: Tensor<2>, number: usize| match factors {
            Some(factors) => y * factors[number],
            None => y,
        };
        let inner = match &self.gate_proj {
            Some(gate) => glu(scaled(product(x.clone(), gate, 0), 0), product(x, &self.up_proj, width), kind),
            None => act(pass.linear(x, &self.up_proj), kind),
        };
        scaled(pass.linear(inner, &self.down_proj), 1)
    }
}
