//! The shared decoder: pre-norm blocks of grouped-query attention and SwiGLU. Field names are Hugging Face's, so a
//! parameter's path in the module is its name in model.safetensors.
//!
//! Shapes: n = batch · seq rows, h = hidden size, d = head dim. Activations stay [n, h]; attention sees [batch, seq, heads, d].

use anyhow::Result;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::config::DecoderConfig;
use super::ops::{linear, rms_norm, rope, swiglu, tensor_from_vec};

#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in], as Hugging Face stores it.
    pub weight: Param<Tensor<2>>,
    pub bias: Option<Param<Tensor<1>>>,
}

#[derive(Module, Debug)]
pub struct RmsNorm {
    pub weight: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
pub struct Embedding {
    /// [vocab, h]
    pub weight: Param<Tensor<2>>,
}

#[derive(Module, Debug)]
pub struct Attention {
    pub q_proj: Linear,
    pub k_proj: Linear,
    pub v_proj: Linear,
    pub o_proj: Linear,
}

#[derive(Module, Debug)]
pub struct Mlp {
    pub gate_proj: Linear,
    pub up_proj: Linear,
    pub down_proj: Linear,
}

#[derive(Module, Debug)]
pub struct Block {
    pub self_attn: Attention,
    pub mlp: Mlp,
    pub input_layernorm: RmsNorm,
    pub post_attention_layernorm: RmsNorm,
}

#[derive(Module, Debug)]
pub struct Trunk {
    pub embed_tokens: Embedding,
    pub layers: Vec<Block>,
    pub norm: RmsNorm,
}

#[derive(Module, Debug)]
pub struct Decoder {
    pub model: Trunk,
    /// None when the head is the embedding matrix.
    pub lm_head: Option<Linear>,
}

/// How a block's queries meet keys: (layer, q, k, v), each [batch, seq, heads, d], rotated -> [batch, seq, heads, d].
pub type Attend<'a> = &'a mut dyn FnMut(usize, Tensor<4>, Tensor<4>, Tensor<4>) -> Tensor<4>;

/// A source of parameters: the values of (name, shape), row-major.
pub type Values<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>> + 'a;

impl Linear {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val(), self.bias.as_ref().map(Param::val))
    }
}

impl Block {
    /// x [n, h] with n = batch · seq; cos and sin [seq, d/2].
    fn forward(&self, x: Tensor<2>, pass: &Pass, attend: impl FnOnce(Tensor<4>, Tensor<4>, Tensor<4>) -> Tensor<4>) -> Tensor<2> {
        let Pass { batch, seq, cos, sin, config } = pass;
        let [n, _] = x.dims();
        let at = &self.self_attn;
        let heads = |x: Tensor<2>, count: usize| x.reshape([*batch, *seq, count, config.head_dim]);
        let h = rms_norm(x.clone(), self.input_layernorm.weight.val(), config.rms_norm_eps);
        let q = rope(heads(at.q_proj.forward(h.clone()), config.num_attention_heads), cos.clone(), sin.clone());
        let k = rope(heads(at.k_proj.forward(h.clone()), config.num_key_value_heads), cos.clone(), sin.clone());
        let v = heads(at.v_proj.forward(h), config.num_key_value_heads);
        let a = attend(q, k, v).reshape([n, config.num_attention_heads * config.head_dim]);
        let x = x + at.o_proj.forward(a);
        let h = rms_norm(x.clone(), self.post_attention_layernorm.weight.val(), config.rms_norm_eps);
        x + self.mlp.down_proj.forward(swiglu(self.mlp.gate_proj.forward(h.clone()), self.mlp.up_proj.forward(h)))
    }
}

/// What every block of one forward pass shares.
pub struct Pass<'a> {
    pub batch: usize,
    pub seq: usize,
    /// [seq, d/2]
    pub cos: Tensor<2>,
    pub sin: Tensor<2>,
    pub config: &'a DecoderConfig,
}

impl Decoder {
    /// Embedded tokens [batch · seq, h] to final hidden states [batch · seq, h], the last norm applied.
    pub fn forward(&self, x: Tensor<2>, pass: &Pass, attend: Attend) -> Tensor<2> {
        let blocks = self.model.layers.iter().enumerate();
        let x = blocks.fold(x, |x, (layer, block)| block.forward(x, pass, |q, k, v| attend(layer, q, k, v)));
        rms_norm(x, self.model.norm.weight.val(), pass.config.rms_norm_eps)
    }

    /// A network without parameters worth the name, to stand in while the real one is moved through an optimizer.
    pub fn empty(device: &Device) -> Self {
        let weight = Param::from_tensor(Tensor::zeros([1, 1], device));
        let norm = RmsNorm { weight: Param::from_tensor(Tensor::zeros([1], device)) };
        Self { model: Trunk { embed_tokens: Embedding { weight }, layers: Vec::new(), norm }, lm_head: None }
    }

    /// The matrix of the head, [vocab, h].
    pub fn head(&self) -> &Param<Tensor<2>> {
        self.lm_head.as_ref().map_or(&self.model.embed_tokens.weight, |head| &head.weight)
    }

    /// Builds the network from a source of parameters.
    pub fn build(config: &DecoderConfig, device: &Device, values: &mut Values) -> Result<Self> {
        let c = config;
        let mut load = Loader { device, values };
        let (q, kv) = (c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim);
        let embed_tokens = Embedding { weight: load.matrix("model.embed_tokens.weight", c.vocab_size, c.hidden_size)? };
        let mut layers = Vec::with_capacity(c.num_hidden_layers);
        for i in 0..c.num_hidden_layers {
            let at = |name: &str| format!("model.layers.{i}.{name}");
            layers.push(Block {
                self_attn: Attention {
                    q_proj: load.linear(&at("self_attn.q_proj"), q, c.hidden_size, c.qkv_bias)?,
                    k_proj: load.linear(&at("self_attn.k_proj"), kv, c.hidden_size, c.qkv_bias)?,
                    v_proj: load.linear(&at("self_attn.v_proj"), kv, c.hidden_size, c.qkv_bias)?,
                    o_proj: load.linear(&at("self_attn.o_proj"), c.hidden_size, q, c.o_bias)?,
                },
                mlp: Mlp {
                    gate_proj: load.linear(&at("mlp.gate_proj"), c.intermediate_size, c.hidden_size, c.mlp_bias)?,
                    up_proj: load.linear(&at("mlp.up_proj"), c.intermediate_size, c.hidden_size, c.mlp_bias)?,
                    down_proj: load.linear(&at("mlp.down_proj"), c.hidden_size, c.intermediate_size, c.mlp_bias)?,
                },
                input_layernorm: RmsNorm { weight: load.vector(&at("input_layernorm.weight"), c.hidden_size)? },
                post_attention_layernorm: RmsNorm { weight: load.vector(&at("post_attention_layernorm.weight"), c.hidden_size)? },
            });
        }
        let norm = RmsNorm { weight: load.vector("model.norm.weight", c.hidden_size)? };
        let lm_head = match c.tie_word_embeddings {
            true => None,
            false => Some(load.linear("lm_head", c.vocab_size, c.hidden_size, false)?),
        };
        Ok(Self { model: Trunk { embed_tokens, layers, norm }, lm_head })
    }
}

struct Loader<'a> {
    device: &'a Device,
    values: &'a mut Values<'a>,
}

impl Loader<'_> {
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Param<Tensor<2>>> {
        let values = (self.values)(name, &[rows, columns])?;
        Ok(Param::from_tensor(tensor_from_vec(values, [rows, columns], self.device)))
    }
    fn vector(&mut self, name: &str, len: usize) -> Result<Param<Tensor<1>>> {
        let values = (self.values)(name, &[len])?;
        Ok(Param::from_tensor(tensor_from_vec(values, [len], self.device)))
    }
    fn linear(&mut self, name: &str, out: usize, input: usize, bias: bool) -> Result<Linear> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), out, input)?,
            bias: if bias { Some(self.vector(&format!("{name}.bias"), out)?) } else { None },
        })
    }
}
