//! A layer of Mamba-2 (Dao & Gu 2024, <https://arxiv.org/abs/2405.21060>): a convolution over x, B and C, the selective scan
//! (`ops/scan.rs`), and the gate silu(z). Families differ in the norm over the heads of a group: before the gate, behind it, or none.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::delta_net::ConvKernel;
use super::recurrent_config::{MambaNorm, MambaShape};
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
    /// The norm's weight over the values of all groups, without an offset; `None` without a norm.
    pub(crate) norm: Option<Norm>,
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
        let scan = shape.scan;
        let (values, width) = (scan.values(), scan.width());
        let projected = pass.up(pass.linear(x, &self.in_proj));
        let part = |first: usize, len: usize, factor: f32| {
            let part = projected.clone().narrow(1, first, len);
            if factor == 1.0 { part } else { part * factor }
        };
        let (keys, [of_z, of_x, of_b, of_c, of_dt]) = (scan.keys(), shape.factors);
        let xbc = match [of_x, of_b, of_c] == [1.0; 3] {
            true => part(values, width, 1.0),
            false => {
                let b = 2 * values;
                Tensor::cat(vec![part(values, values, of_x), part(b, keys, of_b), part(b + keys, keys, of_c)], 1)
            }
        };
        let xbc = mixer.convolve(layer, xbc, self.conv1d.taps());
        let xbc = match &self.conv1d.bias {
            Some(bias) => xbc + bias.val().unsqueeze::<2>(),
            None => xbc,
        };
        let inputs = ScanTensors {
            xbc: act(xbc, pass.config.activation),
            dt: part(values + width, scan.heads, of_dt),
            a_log: self.a_log.val(),
            dt_bias: self.dt_bias.val(),
            skip: self.skip.val(),
        };
        let (z, y) = (part(0, values, of_z), mixer.scan(layer, inputs));
        let y = match shape.norm {
            MambaNorm::None => glu(z, y, Act::Silu),
            MambaNorm::BehindGate => self.normed(glu(z, y, Act::Silu), scan.groups, pass),
            MambaNorm::BeforeGate => glu(z, self.normed(y, scan.groups, pass), Act::Silu),
        };
        pass.linear(pass.down(y), &self.out_proj)
    }

    /// The norm of y [n, values] over each group.
    fn normed(&self, y: Tensor<2>, groups: usize, pass: &Pass) -> Tensor<2> {
        let weight = self.norm.as_ref().and_then(|norm| norm.weight.as_ref()).expect("built with the norm of its shape").val();
        if groups == 1 {
            return rms_norm(y, weight, pass.config.norm_eps, 0.0);
        }
        let [n, values] = y.dims();
        let y = pass.plain_norm(y.reshape([n, groups, values / groups]));
        y.reshape([n, values]) * weight.unsqueeze::<2>()
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
