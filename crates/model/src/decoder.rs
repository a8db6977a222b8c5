//! The shared decoder: blocks of attention and MLP around a residual stream. Field names are the names of Llama in Hugging Face's
//! spelling. So a parameter's path in the module is its name in most files (see [`super::naming`] for the others).
//!
//! Shapes: n = rows of a pass, all tokens one after another without padding; h = hidden size, d = head dim. The residual stream
//! is [n, h] in f32 for every dtype of the projections; attention gets [n, heads, d].

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};

use super::config::{DecoderConfig, QkNorm, Residual};
use super::experts::{FeedForward, Mixture};
use super::latent_attention::LatentAttention;
use super::layer_shape::AttentionShape;
use super::linear_attention::{DeltaNet, Mamba, RecurrentKind, ShortConv};
use super::lora::targets::LAYER_INPUTS;
use super::nf4::Nf4Weight;
use super::ops::{fused, rope};
use super::residual_stream::ResidualStream;
use super::shared_keys::SharedKeys;
use super::token_mixer::TokenMixer;

pub use super::mlp::Mlp;
pub use super::pass::{Linear, Lora, Norm, Pass};

#[derive(Module, Debug)]
pub struct Embedding {
    /// [vocabulary or positions, h]
    pub weight: Param<Tensor<2>>,
}

#[derive(Module, Debug)]
pub struct Attention {
    /// With an output gate, the query and the gate of each head together, [heads · 2 · d, h].
    pub q_proj: Linear,
    /// `None` for a layer that reads the keys and values of an earlier one.
    pub k_proj: Option<Linear>,
    /// Like `k_proj`; also `None` if the values are the projected keys.
    pub v_proj: Option<Linear>,
    pub o_proj: Linear,
    /// The adapter of q, k and v together, in this order, if files hold them as one matrix.
    pub qkv_lora: Option<Lora>,
    /// The norm of the queries: over each head, `[d]`, or over all of them, [heads · d].
    pub(crate) q_norm: Option<Norm>,
    pub(crate) k_norm: Option<Norm>,
    /// The logits of attention's sinks, `[heads]`.
    pub(crate) sinks: Option<Param<Tensor<1>>>,
}

#[derive(Module, Debug)]
pub struct Block {
    /// `None` for a layer with another mixer of tokens alone.
    pub self_attn: Option<Attention>,
    pub(crate) latent_attn: Option<LatentAttention>,
    pub(crate) linear_attn: Option<DeltaNet>,
    pub(crate) conv: Option<ShortConv>,
    pub(crate) mamba: Option<Mamba>,
    pub mlp: FeedForward,
    pub input_layernorm: Option<Norm>,
    /// The norm before the MLP; the norm of the attention's output if results are normalised.
    pub post_attention_layernorm: Option<Norm>,
    /// The norm before the MLP in a sandwich. `post_feedforward_layernorm` is the norm after the MLP.
    pub(crate) pre_feedforward_layernorm: Option<Norm>,
    pub(crate) post_feedforward_layernorm: Option<Norm>,
    /// The gate and the projection of the layer's own input, and the norm of the result.
    pub(crate) per_layer_input_gate: Option<Linear>,
    pub(crate) per_layer_projection: Option<Linear>,
    pub(crate) post_per_layer_input_norm: Option<Norm>,
    /// Factor on the residual stream after the block, not trained, `[1]`.
    pub(crate) layer_scalar: Option<Param<Tensor<1>>>,
}

#[derive(Module, Debug)]
pub struct Trunk {
    pub embed_tokens: Embedding,
    /// The embedding of learned positions.
    pub(crate) embed_positions: Option<Embedding>,
    /// The second table of layers' own inputs, [rows, layers · width]; the projection of embedded tokens, and its norm over the
    /// input of each layer.
    pub(crate) embed_tokens_per_layer: Option<Embedding>,
    pub(crate) per_layer_model_projection: Option<Linear>,
    pub(crate) per_layer_projection_norm: Option<Norm>,
    pub layers: Vec<Block>,
    pub norm: Norm,
}

#[derive(Module, Debug)]
pub struct Decoder {
    pub model: Trunk,
    /// `None` when the head is the embedding matrix.
    pub lm_head: Option<Linear>,
}

impl Attention {
    /// The projections, by their names in a block.
    fn projections(&self) -> impl Iterator<Item = (&'static str, &Linear)> {
        let keys = [("self_attn.k_proj", &self.k_proj), ("self_attn.v_proj", &self.v_proj)];
        let keys = keys.into_iter().filter_map(|(name, linear)| Some((name, linear.as_ref()?)));
        keys.chain([("self_attn.q_proj", &self.q_proj), ("self_attn.o_proj", &self.o_proj)])
    }

    /// x [n, h] -> [n, h], in the pass's dtype.
    fn forward(&self, x: Tensor<2>, pass: &Pass, layer: usize, mixer: &mut dyn TokenMixer, shared: &mut SharedKeys) -> Tensor<2> {
        let (n, c) = (x.dims()[0], pass.config);
        let shape = c.attention(layer);
        let ([q, k, v], gate) = match c.has_plain_heads() {
            true if fused::available(&x) => self.fused_heads(x, pass, shape),
            false if c.value_norm => (self.with_normed_values(x, pass, layer, shared), None),
            _ => self.heads(x, pass, shape),
        };
        let q = match &pass.query_scale {
            Some(scale) if q.is_autodiff() => q * Tensor::from_inner(scale.clone()),
            Some(scale) => q * scale.clone(),
            None => q,
        };
        let sinks = self.sinks.as_ref().map(|sinks| sinks.val());
        let y = mixer.attend(shape.source.unwrap_or(layer), [q, k, v], sinks).reshape([n, shape.queries()]);
        let y = match gate {
            Some(gate) => y * activation::sigmoid(gate),
            None => y,
        };
        pass.linear(y, &self.o_proj)
    }

    /// The projections of q, k and v, with their head counts and the norms over each head.
    fn parts(&self, shape: AttentionShape) -> [(&Linear, usize, Option<&Norm>); 3] {
        let [k, v] = [&self.k_proj, &self.v_proj].map(|proj| proj.as_ref().expect("a layer with its own keys and values"));
        [(&self.q_proj, shape.heads, self.q_norm.as_ref()), (k, shape.kv_heads, self.k_norm.as_ref()), (v, shape.kv_heads, None)]
    }

    /// Projects x [n, h] -> q, k and v [n, heads, d], q and k rotated, each head of v divided by its root mean square. A layer
    /// without own keys and values reads those of an earlier layer.
    fn with_normed_values(&self, x: Tensor<2>, pass: &Pass, layer: usize, shared: &mut SharedKeys) -> [Tensor<3>; 3] {
        let (n, shape) = (x.dims()[0], pass.config.attention(layer));
        let project = |proj: &Linear, count: usize| pass.linear(x.clone(), proj).reshape([n, count, shape.head_dim]);
        let finish = |y: Tensor<3>, norm: &Option<Norm>| {
            let y = match norm {
                Some(norm) => pass.down(pass.norm(pass.up(y), norm)),
                None => y,
            };
            match &pass.rotation {
                Some((cos, sin)) => rope(y, cos.clone(), sin.clone()),
                None => y,
            }
        };
        let q = finish(project(&self.q_proj, shape.heads), &self.q_norm);
        let (Some(k_proj), None) = (&self.k_proj, shape.source) else {
            let [k, v] = shared.of(shape.source.expect("a layer without own keys has a source"));
            return [q, k, v];
        };
        let k = project(k_proj, shape.kv_heads);
        let v = self.v_proj.as_ref().map_or_else(|| k.clone(), |v_proj| project(v_proj, shape.kv_heads));
        let (k, v) = (finish(k, &self.k_norm), pass.down(pass.plain_norm(pass.up(v))));
        shared.keep(layer, [&k, &v], pass.config);
        [q, k, v]
    }

    /// Projects x [n, h] -> q, k and v [n, heads, d], rotated, and the gate of the output.
    fn heads(&self, x: Tensor<2>, pass: &Pass, shape: AttentionShape) -> ([Tensor<3>; 3], Option<Tensor<2>>) {
        let ([n, _], c) = (x.dims(), pass.config);
        let products = self.products(&x, pass, shape, |proj| pass.linear(x.clone(), proj));
        let (products, gate) = ungated(products, c);
        let mut heads = products.into_iter().zip(self.parts(shape)).enumerate().map(|(part, (y, (_, count, norm)))| {
            let normed_heads = |y: Tensor<3>, now: bool| match norm {
                Some(norm) if now => pass.down(pass.norm(pass.up(y), norm)),
                _ => y,
            };
            let y = match norm {
                Some(norm) if c.qk_norm == QkNorm::AllHeads => pass.down(pass.norm(pass.up(y), norm)),
                _ => y,
            };
            let y = normed_heads(y.reshape([n, count, shape.head_dim]), c.qk_norm == QkNorm::PerHead);
            let y = match &pass.rotation {
                Some((cos, sin)) if part < 2 => rope(y, cos.clone(), sin.clone()),
                _ => y,
            };
            normed_heads(y, c.qk_norm == QkNorm::AfterRotation)
        });
        (std::array::from_fn(|_| heads.next().expect("three parts")), gate)
    }

    /// Does what [`heads`](Self::heads) does, with one kernel after the matmuls.
    fn fused_heads(&self, x: Tensor<2>, pass: &Pass, shape: AttentionShape) -> ([Tensor<3>; 3], Option<Tensor<2>>) {
        let c = pass.config;
        // The gate's part of a bias is not the kernel's.
        let (products, biases) = match c.output_gate {
            true => (self.products(&x, pass, shape, |proj| pass.linear(x.clone(), proj)), [None, None, None]),
            false => {
                let biases = self.parts(shape).map(|(proj, ..)| proj.bias.as_ref().map(|bias| bias.val()));
                (self.products(&x, pass, shape, |proj| pass.product(x.clone(), proj, None)), biases)
            }
        };
        let (products, gate) = ungated(products, c);
        let norms = [&self.q_norm, &self.k_norm].map(|norm| norm.as_ref().map(|norm| pass.weights(norm, &x)));
        let sizes = [shape.heads, shape.kv_heads, shape.head_dim];
        (fused::heads(products, sizes, biases, norms, pass.rotation.as_ref()), gate)
    }

    /// Projects x [n, h] by the matrices of q, k and v with `project`, and adds their adapters: [n, heads · d] each.
    fn products(
        &self,
        x: &Tensor<2>,
        pass: &Pass,
        shape: AttentionShape,
        project: impl Fn(&Linear) -> Tensor<2>,
    ) -> [Tensor<2>; 3] {
        let together = self.qkv_lora.as_ref().map(|lora| pass.lora(x.clone(), lora));
        let mut first = 0;
        self.parts(shape).map(|(proj, count, _)| {
            let (y, width) = (project(proj), count * shape.head_dim);
            first += width;
            match &together {
                Some(all) => y + all.clone().narrow(1, first - width, width),
                None => y,
            }
        })
    }
}

/// Splits the projection of gated queries [n, heads · 2 · d] into queries and gates, [n, heads · d] each.
fn ungated([q, k, v]: [Tensor<2>; 3], c: &DecoderConfig) -> ([Tensor<2>; 3], Option<Tensor<2>>) {
    if !c.output_gate {
        return ([q, k, v], None);
    }
    let (n, heads, d) = (q.dims()[0], c.num_attention_heads, c.head_dim);
    let q = q.reshape([n, heads, 2 * d]);
    let [q, gate] = [0, d].map(|first| q.clone().narrow(2, first, d).reshape([n, heads * d]));
    ([q, k, v], Some(gate))
}

impl Block {
    /// Mixes tokens: attention, or the layer's recurrence. x [n, h] -> [n, h], in the pass's dtype.
    fn mix(&self, x: Tensor<2>, pass: &Pass, layer: usize, mixer: &mut dyn TokenMixer, shared: &mut SharedKeys) -> Tensor<2> {
        if let (Some(attention), Some(shape)) = (&self.latent_attn, pass.config.latent) {
            return attention.forward(x, shape, pass, layer, mixer);
        }
        if let (Some(mamba), Some(RecurrentKind::Mamba(shape))) = (&self.mamba, pass.config.recurrent(layer)) {
            let Some((attention, factors)) = self.self_attn.as_ref().zip(pass.config.parallel) else {
                return mamba.forward(x, shape, pass, layer, mixer);
            };
            let y = mamba.forward(x.clone(), shape, pass, layer, mixer) * factors.recurrence;
            return y + attention.forward(x, pass, layer, mixer, shared) * factors.attention;
        }
        match (&self.self_attn, &self.linear_attn, &self.conv, pass.config.recurrent(layer)) {
            (Some(attention), ..) => attention.forward(x, pass, layer, mixer, shared),
            (_, Some(net), _, Some(RecurrentKind::DeltaNet(shape))) => net.forward(x, shape, pass, layer, mixer),
            (_, _, Some(conv), _) => conv.forward(x, pass, layer, mixer),
            _ => unreachable!("a block is built with the layer that its config names"),
        }
    }

    /// Runs one block on the residual stream. `shared` has the keys and values of earlier layers that this one may read.
    pub(crate) fn forward(
        &self,
        x: &mut ResidualStream,
        pass: &Pass,
        layer: usize,
        mixer: &mut dyn TokenMixer,
        shared: &mut SharedKeys,
    ) {
        let input = x.input(self.input_layernorm.as_ref(), pass);
        let residual = pass.config.residual;
        let normed = (residual == Residual::ParallelOneNorm).then(|| input.clone());
        let attention = self.mix(input, pass, layer, mixer, shared);
        match residual {
            Residual::Parallel | Residual::ParallelOneNorm => {
                let input = normed.unwrap_or_else(|| x.input(self.post_attention_layernorm.as_ref(), pass));
                let mlp = self.mlp.forward(input, pass);
                x.add(attention, pass);
                x.add(mlp, pass);
            }
            Residual::Sequential => {
                x.add(attention, pass);
                let mlp = self.mlp.forward(x.input(self.post_attention_layernorm.as_ref(), pass), pass);
                x.add(mlp, pass);
            }
            Residual::Sandwich | Residual::Behind => {
                x.add(pass.normed_result(attention, self.post_attention_layernorm.as_ref()), pass);
                let mlp = self.mlp.forward(x.input(self.pre_feedforward_layernorm.as_ref(), pass), pass);
                x.add(pass.normed_result(mlp, self.post_feedforward_layernorm.as_ref()), pass);
            }
        }
        if let Some(input) = &pass.layer_input
            && let Some(y) = self.of_layer_input(x.input(None, pass), input, pass)
        {
            x.add(pass.normed_result(y, self.post_per_layer_input_norm.as_ref()), pass);
        }
        if let Some(scalar) = &self.layer_scalar {
            x.scale(scalar.val(), pass);
        }
    }
}

impl Decoder {
    /// Maps embedded tokens [n, h] to final hidden states [n, h], after the last norm. The tokens have the further columns of
    /// [`super::layer_inputs`], if the family has them.
    pub(crate) fn forward(&self, x: Tensor<2>, pass: &Pass, mixer: &mut dyn TokenMixer) -> Tensor<2> {
        let (inputs, x) = (self.layer_inputs(&x, pass), self.residual_columns(x));
        let (mut x, mut shared) = (ResidualStream::new(self.first_input(x, pass)), SharedKeys::default());
        for (layer, block) in self.model.layers.iter().enumerate() {
            let layer_input = inputs.as_ref().and_then(|inputs| pass.input_of(layer, inputs));
            block.forward(&mut x, &Pass { layer_input, ..pass.at_layer(layer) }, layer, mixer, &mut shared);
        }
        x.last_norm(&self.model.norm, pass)
    }

    /// Returns the input of the first block [n, h] from embedded tokens [n, h].
    pub(crate) fn first_input(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        if pass.config.embedding_norm { self.last_norm(x, pass) } else { x }
    }

    /// Returns the same network without training of the factors on the residual stream.
    pub(crate) fn with_frozen_scalars(mut self) -> Self {
        let block = |block: Block| {
            let layer_scalar = block.layer_scalar.map(|scalar| scalar.set_require_grad(false));
            Block { layer_scalar, ..block }
        };
        self.model.layers = self.model.layers.into_iter().map(block).collect();
        self
    }

    /// Returns the same network without training of the biases of routers' choices, or of `all` parameters of routers.
    pub(crate) fn with_frozen_routers(mut self, all: bool) -> Self {
        let mixture = |mixture: Mixture| {
            let mixture = mixture.with_frozen_bias();
            if all { mixture.with_frozen_router() } else { mixture }
        };
        let block = |block: Block| match block.mlp {
            FeedForward::Mixture(inside) => Block { mlp: FeedForward::Mixture(mixture(inside)), ..block },
            FeedForward::Dense(_) => block,
        };
        self.model.layers = self.model.layers.into_iter().map(block).collect();
        self
    }

    /// Applies the norm after the last block.
    pub(crate) fn last_norm(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        pass.norm(x, &self.model.norm)
    }

    /// Returns a nearly empty network, a placeholder while the real one is moved through an optimizer.
    pub fn empty(device: &Device) -> Self {
        let weight = Param::from_tensor(Tensor::zeros([1, 1], device));
        let norm = Norm { weight: None, bias: None };
        let embed_tokens = Embedding { weight };
        let model = Trunk {
            embed_tokens,
            embed_positions: None,
            embed_tokens_per_layer: None,
            per_layer_model_projection: None,
            per_layer_projection_norm: None,
            layers: Vec::new(),
            norm,
        };
        Self { model, lm_head: None }
    }

    /// The matrix of the head, [vocab, h], which is never quantised.
    pub fn head(&self) -> &Param<Tensor<2>> {
        self.lm_head.as_ref().and_then(|head| head.weight.float()).unwrap_or(&self.model.embed_tokens.weight)
    }

    /// All matrices in 4 bits, by the names of parameters.
    pub(crate) fn quantised(&self) -> impl Iterator<Item = (String, &Arc<Nf4Weight>)> {
        let of_layers = self.model.layers.iter().enumerate().flat_map(|(layer, block)| {
            let attention = block.self_attn.iter().flat_map(Attention::projections);
            let latent = block.latent_attn.iter().flat_map(LatentAttention::projections_by_name);
            let net = block.linear_attn.iter().flat_map(DeltaNet::projections_by_name);
            let conv = block.conv.iter().flat_map(ShortConv::projections_by_name);
            let mamba = block.mamba.iter().flat_map(Mamba::projections_by_name);
            let inputs = block.input_projections();
            let all = attention.chain(latent).chain(net).chain(conv).chain(mamba).chain(block.mlp.projections()).chain(inputs);
            all.map(move |(name, linear)| (format!("model.layers.{layer}.{name}"), linear))
        });
        let of_model = self.model.per_layer_model_projection.iter().map(|linear| (LAYER_INPUTS.to_owned(), linear));
        let all = of_layers.chain(of_model);
        all.filter_map(|(name, linear)| Some((format!("{name}.weight"), linear.weight.nf4()?)))
    }
}
