//! A layer of Mamba-2 (Dao & Gu 2024, <https://arxiv.org/abs/2405.21060>): a convolution over x, B and C, the selective scan
//! (`ops/scan.rs`), and a norm of the heads' outputs times silu(z), over all heads of a group.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::delta_net::ConvKernel;
use super::recurrent_config::MambaShape;
use crate::ops::{Act, ScanTensors, act, glu, rms_norm};
use crate::pass::{Linear, Lora, Norm, Pass};
use crate::token_mixer::TokenMixer;

/// A layer of Mamba-2.
#[derive(Module, Debug)]
pub struct Mamba {
    /// z, then x, B and C, then the time steps.
    pub(crate) in_proj: Linear,
    pub(crate) conv1d: ConvKernel,
    /// `[heads]`
    pub(crate) a_log: Param<Tensor<1>>,
    /// `[heads]`
    pub(crate) dt_bias: Param<Tensor<1>>,
    /// `[heads]`; D in files.
    pub(crate) skip: Param<Tensor<1>>,
    /// The norm's weight over the values of all groups, without an offset.
    pub(crate) norm: Norm,
    pub(crate) out_proj: Linear,
}

impl Mamba {
    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(
        &self,
        x: Tensor<2>,
        shape: MambaShape,
        pass: &Pass,
        layer: usize,
        mixer: &mut dyn TokenMixer,
    ) -> Tensor<2> {
        let (n, scan) = (x.dims()[0], shape.scan);
        let (values, width) = (scan.values(), scan.width());
        let projected = pass.up(pass.linear(x, &self.in_proj));
        let part = |first: usize, len: usize| projected.clone().narrow(1, first, len);
        let xbc = mixer.convolve(layer, part(values, width), self.conv1d.taps());
        let xbc = match &self.conv1d.bias {
            Some(bias) => xbc + bias.val().unsqueeze::<2>(),
            None => xbc,
        };
        let inputs = ScanTensors {
            xbc: act(xbc, pass.config.activation),
            dt: part(values + width, scan.heads),
            a_log: self.a_log.val(),
            dt_bias: self.dt_bias.val(),
            skip: self.skip.val(),
        };
        let y = glu(part(0, values), mixer.scan(layer, inputs), Act::Silu);
        let weight = self.norm.weight.as_ref().expect("the norm of Mamba-2 has a weight").val();
        let y = match scan.groups {
            1 => rms_norm(y, weight, pass.config.norm_eps, 0.0),
            groups => {
                let y = pass.plain_norm(y.reshape([n, groups, values / groups]));
                y.reshape([n, values]) * weight.unsqueeze::<2>()
            }
        };
        pass.linear(pass.down(y), &self.out_proj)
    }

    /// The adapter slots of the layer's projections, by their names in a block.
    pub(crate) fn lora_slots(&mut self) -> Vec<(&'static str, &mut Option<Lora>)> {
        vec![("mamba.in_proj", &mut self.in_proj.lora), ("mamba.out_proj", &mut self.out_proj.lora)]
    }

    /// The projections, by their names in a block.
    pub(crate) fn projections_by_name(&self) -> Vec<(&'static str, &Linear)> {
        vec![("mamba.in_proj", &self.in_proj), ("mamba.out_proj", &self.out_proj)]
    }
}
