//! A gated delta net (Yang et al. 2024, <https://arxiv.org/abs/2412.06464>): a convolution over queries, keys and values, the
//! gated delta rule (`ops/delta_rule.rs`), a norm of each value head, gated by silu(z).

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::recurrent_config::DeltaNetShape;
use crate::ops::{Act, DeltaTensors, act, glu, rms_norm};
use crate::pass::{Linear, Lora, Norm, Pass};
use crate::token_mixer::TokenMixer;

/// The weights of a causal depthwise convolution.
#[derive(Module, Debug)]
pub struct ConvKernel {
    /// [channels, 1, k]
    pub weight: Param<Tensor<3>>,
    pub bias: Option<Param<Tensor<1>>>,
}

impl ConvKernel {
    /// The weights [channels, k].
    pub(super) fn taps(&self) -> Tensor<2> {
        let [channels, _, size] = self.weight.val().dims();
        self.weight.val().reshape([channels, size])
    }
}

/// A layer of gated delta nets. Files hold its projections as four matrices, or as two.
#[derive(Module, Debug)]
pub struct DeltaNet {
    pub(crate) in_proj_qkv: Option<Linear>,
    pub(crate) in_proj_z: Option<Linear>,
    pub(crate) in_proj_b: Option<Linear>,
    pub(crate) in_proj_a: Option<Linear>,
    /// q, k, v and z of each key head together.
    pub(crate) in_proj_qkvz: Option<Linear>,
    /// b and a of each key head together.
    pub(crate) in_proj_ba: Option<Linear>,
    pub(crate) conv1d: ConvKernel,
    /// `[value heads]`
    pub(crate) a_log: Param<Tensor<1>>,
    /// `[value heads]`
    pub(crate) dt_bias: Param<Tensor<1>>,
    /// The norm over each value head, without an offset of its weight.
    pub(crate) norm: Norm,
    pub(crate) out_proj: Linear,
}

impl DeltaNet {
    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(
        &self,
        x: Tensor<2>,
        shape: DeltaNetShape,
        pass: &Pass,
        layer: usize,
        mixer: &mut dyn TokenMixer,
    ) -> Tensor<2> {
        let (n, heads) = (x.dims()[0], shape.heads);
        let [qkv, z, b, a] = self.projections(x, shape, pass).map(|x| pass.up(x));
        let qkv = act(mixer.convolve(layer, qkv, self.conv1d.taps()), pass.config.activation);
        let inputs = DeltaTensors { qkv, a, b, a_log: self.a_log.val(), dt_bias: self.dt_bias.val() };
        let y = mixer.delta_rule(layer, inputs).reshape([n, heads.value_heads, heads.value_dim]);
        let y = rms_norm(
            y,
            self.norm.weight.as_ref().expect("the norm of a delta net has a weight").val(),
            pass.config.norm_eps,
            0.0,
        )
        .reshape([n, heads.values()]);
        pass.linear(pass.down(glu(z, y, Act::Silu)), &self.out_proj)
    }

    /// The adapter slots of the layer's projections, by their names in a block.
    pub(crate) fn lora_slots(&mut self) -> Vec<(&'static str, &mut Option<Lora>)> {
        let named = [
            ("linear_attn.in_proj_qkv", &mut self.in_proj_qkv),
            ("linear_attn.in_proj_z", &mut self.in_proj_z),
            ("linear_attn.in_proj_b", &mut self.in_proj_b),
            ("linear_attn.in_proj_a", &mut self.in_proj_a),
            ("linear_attn.in_proj_qkvz", &mut self.in_proj_qkvz),
            ("linear_attn.in_proj_ba", &mut self.in_proj_ba),
        ];
        let present = named.into_iter().filter_map(|(name, linear)| Some((name, &mut linear.as_mut()?.lora)));
        present.chain([("linear_attn.out_proj", &mut self.out_proj.lora)]).collect()
    }

    /// The projections, by their names in a block.
    pub(crate) fn projections_by_name(&self) -> Vec<(&'static str, &Linear)> {
        let named = [
            ("linear_attn.in_proj_qkv", self.in_proj_qkv.as_ref()),
            ("linear_attn.in_proj_z", self.in_proj_z.as_ref()),
            ("linear_attn.in_proj_b", self.in_proj_b.as_ref()),
            ("linear_attn.in_proj_a", self.in_proj_a.as_ref()),
            ("linear_attn.in_proj_qkvz", self.in_proj_qkvz.as_ref()),
            ("linear_attn.in_proj_ba", self.in_proj_ba.as_ref()),
            ("linear_attn.out_proj", Some(&self.out_proj)),
        ];
        named.into_iter().filter_map(|(name, linear)| Some((name, linear?))).collect()
    }

    /// Projects x [n, h] -> queries, keys and values [n, width], z [n, values], b and a [n, value heads].
    fn projections(&self, x: Tensor<2>, shape: DeltaNetShape, pass: &Pass) -> [Tensor<2>; 4] {
        let project = |layer: &Option<Linear>| pass.linear(x.clone(), layer.as_ref().expect("built for this shape"));
        if !shape.fused {
            return [&self.in_proj_qkv, &self.in_proj_z, &self.in_proj_b, &self.in_proj_a].map(project);
        }
        let (n, heads) = (x.dims()[0], shape.heads);
        let (d, group) = (heads.key_dim, heads.value_heads / heads.key_heads);
        // The columns of each key head lie together.
        let parts = |y: Tensor<2>, widths: &[usize]| -> Vec<Tensor<2>> {
            let y = y.reshape([n, heads.key_heads, widths.iter().sum()]);
            let mut first = 0;
            let part = |width: &usize| {
                first += width;
                y.clone().narrow(2, first - width, *width).reshape([n, heads.key_heads * width])
            };
            widths.iter().map(part).collect()
        };
        let qkvz = parts(project(&self.in_proj_qkvz), &[d, d, group * heads.value_dim, group * heads.value_dim]);
        let ba = parts(project(&self.in_proj_ba), &[group, group]);
        [Tensor::cat(qkvz[..3].to_vec(), 1), qkvz[3].clone(), ba[0].clone(), ba[1].clone()]
    }
}
