//! Attention over latent keys and values (DeepSeek-V2, DeepSeek-V3). A token gives a latent, from which the keys and values of all
//! heads are computed, and one rotating part of a key that all heads share.
//!
//! Keys and values are expanded before attention, which then is that of other families with as many heads of keys as of queries.
//! The cache holds the expanded keys and values: more memory than a cache of the latents, for the same results.

use burn::module::Module;
use burn::tensor::{FloatDType, Tensor};

use super::latent_shape::LatentShape;
use super::ops::{cast, rms_norm, rope};
use super::pass::{Linear, Lora, Norm, Pass};
use super::token_mixer::TokenMixer;

/// The constant under the root of the norms of latents; transformers does not read it from config.json.
const EPS: f64 = 1e-6;

#[derive(Module, Debug)]
pub(crate) struct LatentAttention {
    /// [heads · key, h], without a latent of the queries.
    pub(crate) q_proj: Option<Linear>,
    /// [query rank, h]
    pub(crate) q_a_proj: Option<Linear>,
    pub(crate) q_a_layernorm: Option<Norm>,
    /// [heads · key, query rank]
    pub(crate) q_b_proj: Option<Linear>,
    /// The latent and the rotating part of the keys, [rank + rotating, h].
    pub(crate) kv_a_proj_with_mqa: Linear,
    pub(crate) kv_a_layernorm: Norm,
    /// The still part of the key and the value of each head, [heads · (still + value), rank].
    pub(crate) kv_b_proj: Linear,
    /// [h, heads · value]
    pub(crate) o_proj: Linear,
}

impl LatentAttention {
    /// The adapter slots of the layer's projections, by their names in a block.
    pub(crate) fn lora_slots(&mut self) -> Vec<(&'static str, &mut Option<Lora>)> {
        let of_queries = [
            ("latent_attn.q_proj", &mut self.q_proj),
            ("latent_attn.q_a_proj", &mut self.q_a_proj),
            ("latent_attn.q_b_proj", &mut self.q_b_proj),
        ];
        let present = of_queries.into_iter().filter_map(|(name, linear)| Some((name, &mut linear.as_mut()?.lora)));
        let others = [
            ("latent_attn.kv_a_proj_with_mqa", &mut self.kv_a_proj_with_mqa.lora),
            ("latent_attn.kv_b_proj", &mut self.kv_b_proj.lora),
            ("latent_attn.o_proj", &mut self.o_proj.lora),
        ];
        present.chain(others).collect()
    }

    /// The projections, by their names in a block.
    pub(crate) fn projections_by_name(&self) -> Vec<(&'static str, &Linear)> {
        let of_queries = [
            ("latent_attn.q_proj", &self.q_proj),
            ("latent_attn.q_a_proj", &self.q_a_proj),
            ("latent_attn.q_b_proj", &self.q_b_proj),
        ];
        let present = of_queries.into_iter().filter_map(|(name, linear)| Some((name, linear.as_ref()?)));
        let others = [
            ("latent_attn.kv_a_proj_with_mqa", &self.kv_a_proj_with_mqa),
            ("latent_attn.kv_b_proj", &self.kv_b_proj),
            ("latent_attn.o_proj", &self.o_proj),
        ];
        present.chain(others).collect()
    }

    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(
        &self,
        x: Tensor<2>,
        shape: LatentShape,
        pass: &Pass,
        layer: usize,
        mixer: &mut dyn TokenMixer,
    ) -> Tensor<2> {
        let (n, heads) = (x.dims()[0], pass.config.num_attention_heads);
        let LatentShape { rank, still, rotating, value, .. } = shape;
        let q = self.queries(x.clone(), pass).reshape([n, heads, shape.key()]);
        let [q_still, q_rotating] = [(0, still), (still, rotating)].map(|(first, size)| q.clone().narrow(2, first, size));
        let shared = pass.linear(x, &self.kv_a_proj_with_mqa);
        let k_rotating = shared.clone().narrow(1, rank, rotating).reshape([n, 1, rotating]);
        let latent = normed(shared.narrow(1, 0, rank), &self.kv_a_layernorm, pass);
        let kv = pass.linear(latent, &self.kv_b_proj).reshape([n, heads, still + value]);
        let [k_still, v] = [(0, still), (still, value)].map(|(first, size)| kv.clone().narrow(2, first, size));

        let q = Tensor::cat(vec![q_still, rotated(q_rotating, shape, pass)], 2);
        let k_rotating = rotated(k_rotating, shape, pass).expand([n, heads, rotating]);
        let k = Tensor::cat(vec![k_still, k_rotating], 2);
        let qkv = [q, k, v].map(|x| with_zeros(x, shape.head_dim()));
        let y = mixer.attend(layer, qkv, None).narrow(2, 0, value).reshape([n, heads * value]);
        pass.linear(y, &self.o_proj)
    }

    /// x [n, h] -> [n, heads · key]
    fn queries(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match (&self.q_proj, &self.q_a_proj, &self.q_a_layernorm, &self.q_b_proj) {
            (Some(whole), ..) => pass.linear(x, whole),
            (_, Some(into), Some(norm), Some(out)) => pass.linear(normed(pass.linear(x, into), norm, pass), out),
            _ => unreachable!("queries have one matrix, or two with a norm"),
        }
    }
}

/// Normalises a latent [n, rank], in f32.
fn normed(latent: Tensor<2>, norm: &Norm, pass: &Pass) -> Tensor<2> {
    let weight = norm.weight.as_ref().expect("the norm of a latent has a weight").val();
    pass.down(rms_norm(pass.up(latent), weight, EPS, 0.0))
}

/// Rotates x [n, heads, rotating]. Dimensions that rotate together are first moved to the two halves, in queries and keys alike.
fn rotated(x: Tensor<3>, shape: LatentShape, pass: &Pass) -> Tensor<3> {
    let [n, heads, size] = x.dims();
    let x = match shape.in_pairs {
        true => x.reshape([n, heads, size / 2, 2]).swap_dims(2, 3).reshape([n, heads, size]),
        false => x,
    };
    match &pass.rotation {
        Some((cos, sin)) => rope(x, cos.clone(), sin.clone()),
        None => x,
    }
}

/// Appends zeros to each head: [n, heads, d] -> [n, heads, size].
fn with_zeros(x: Tensor<3>, size: usize) -> Tensor<3> {
    let ([n, heads, d], dtype) = (x.dims(), FloatDType::from(x.dtype()));
    if d == size {
        return x;
    }
    let zeros = cast(Tensor::zeros([n, heads, size - d], &x.device()), dtype);
    Tensor::cat(vec![x, zeros], 2)
}
