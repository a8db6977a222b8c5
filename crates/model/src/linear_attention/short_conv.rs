//! A gated short convolution (LFM2): out(c · conv(b · x)), where b, c and x are projections of the token.

use burn::module::Module;
use burn::tensor::Tensor;

use super::delta_net::ConvKernel;
use crate::pass::{Linear, Lora, Pass};
use crate::token_mixer::TokenMixer;

#[derive(Module, Debug)]
pub struct ShortConv {
    /// b, c and x, [3 · h, h].
    pub(crate) in_proj: Linear,
    pub(crate) conv: ConvKernel,
    pub(crate) out_proj: Linear,
}

impl ShortConv {
    /// The adapter slots of the layer's projections, by their names in a block.
    pub(crate) fn lora_slots(&mut self) -> Vec<(&'static str, &mut Option<Lora>)> {
        vec![("conv.in_proj", &mut self.in_proj.lora), ("conv.out_proj", &mut self.out_proj.lora)]
    }

    /// The projections, by their names in a block.
    pub(crate) fn projections_by_name(&self) -> Vec<(&'static str, &Linear)> {
        vec![("conv.in_proj", &self.in_proj), ("conv.out_proj", &self.out_proj)]
    }

    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(&self, x: Tensor<2>, pass: &Pass, layer: usize, mixer: &mut dyn TokenMixer) -> Tensor<2> {
        let h = x.dims()[1];
        let bcx = pass.up(pass.linear(x, &self.in_proj));
        let [b, c, x] = [0, 1, 2].map(|part| bcx.clone().narrow(1, part * h, h));
        let y = mixer.convolve(layer, b * x, self.conv.taps());
        let y = match &self.conv.bias {
            Some(bias) => y + bias.val().unsqueeze::<2>(),
            None => y,
        };
        pass.linear(pass.down(c * y), &self.out_proj)
    }
}
