//! The shape and switches of the shared decoder. [`super::hf_config`] reads them from config.json, family by family.

use anyhow::Result;

use super::experts::{FileExperts, MixtureConfig};
use super::hf_reader::HfReader;
use super::latent_shape::LatentShape;
use super::layer_shape::{GlobalAttention, LayerInputs, ParallelMixers};
use super::linear_attention::{RecurrentKind, RecurrentLayers};
use super::naming::{self, Naming, TensorLocation};
use super::nf4::FourBit;
use super::ops::{Act, AttentionScoring};
use super::rope::{QueryScaling, RopeConfig};

/// The order of normalisation and addition around a block's attention and MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// x += attention(norm(x)), then x += mlp(norm(x)).
    Sequential,
    /// x += attention(norm₁(x)) + mlp(norm₂(x)) (GPT-NeoX).
    Parallel,
    /// x += attention(norm(x)) + mlp(norm(x)), with the same norm (Cohere).
    ParallelOneNorm,
    /// Like `Sequential`, with each result normalised before it is added (Gemma 2).
    Sandwich,
    /// x += norm(attention(x)), then x += norm(mlp(x)) (OLMo 2).
    Behind,
}

impl Residual {
    /// True if a norm precedes attention.
    pub(crate) fn has_input_norm(self) -> bool {
        self != Self::Behind
    }

    /// True if a block has a norm before its MLP, other than the one before its attention, or a norm behind its attention.
    pub(crate) fn has_second_norm(self) -> bool {
        self != Self::ParallelOneNorm
    }

    /// True if each result is normalised before it is added.
    pub(crate) fn normalises_results(self) -> bool {
        matches!(self, Self::Sandwich | Self::Behind)
    }

    /// The number of norms of a block.
    pub(crate) fn norms(self) -> usize {
        match self {
            Self::ParallelOneNorm => 1,
            Self::Sequential | Self::Parallel | Self::Behind => 2,
            Self::Sandwich => 4,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormKind {
    /// x / rms(x) · (offset + w); Gemma stores w − 1, so its offset is 1.
    Rms { offset: f64 },
    /// x / rms(x), without parameters (NanoChat).
    PlainRms,
    /// (x − mean) / deviation · w + b
    Layer,
    /// (x − mean) / deviation · w (Cohere)
    LayerWithoutBias,
}

impl NormKind {
    /// True if norms have weights.
    pub(crate) fn has_weight(self) -> bool {
        self != Self::PlainRms
    }

    /// True if norms have biases.
    pub(crate) fn has_bias(self) -> bool {
        self == Self::Layer
    }
}

/// The norm of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    None,
    /// A norm over each head, before rotation.
    PerHead,
    /// A norm over all heads together, before rotation (OLMo 2).
    AllHeads,
    /// A norm over each head, after rotation (NanoChat).
    AfterRotation,
}

/// The kind of position embedding.
#[derive(Clone, Debug, PartialEq)]
pub enum Positions {
    Rotary(RopeConfig),
    /// A table of max_position_embeddings rows, added to the embeddings.
    Learned,
}

/// The head: what is computed from the final hidden states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// Logits of the vocabulary.
    Language,
    /// `labels` outputs per token, of a critic or a reward model. The matrix is [labels, h]; `name` is its name in files.
    Classifier { name: &'static str, bias: bool, labels: usize },
}

/// A decoder-only transformer.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub head_dim: usize,
    pub norm: NormKind,
    pub norm_eps: f64,
    pub residual: Residual,
    pub positions: Positions,
    /// The mixtures of experts, in place of the MLPs of some layers or of all.
    pub mixture: Option<MixtureConfig>,
    /// down(act(gate(x)) · up(x)) if true, else down(act(up(x))).
    pub gated: bool,
    pub activation: Act,
    /// The rotation of layers with a window, if it differs from the rotation of `positions`.
    pub local_rope: Option<RopeConfig>,
    /// Per layer: false if its queries and keys do not rotate (NoPE).
    pub rotates: Vec<bool>,
    pub query_scaling: Option<QueryScaling>,
    pub qk_norm: QkNorm,
    /// True if each head of the values is divided by its root mean square.
    pub value_norm: bool,
    /// The attention of layers without a window, if it differs.
    pub global_attention: Option<GlobalAttention>,
    /// The number of last layers that read the keys and values of an earlier layer.
    pub shared_layers: usize,
    /// True if the MLPs of these layers are twice as wide.
    pub double_wide: bool,
    pub layer_inputs: Option<LayerInputs>,
    /// True if a factor, which is not trained, multiplies the residual stream after each block.
    pub layer_scalars: bool,
    /// True if the softmax of each head of attention has a sink, a learned logit without a value.
    pub attention_sinks: bool,
    /// True if the q, k and v projections have biases.
    pub qkv_bias: bool,
    /// True if the output projection has a bias.
    pub o_bias: bool,
    pub mlp_bias: bool,
    /// Factors on the gate of an MLP before its activation, and on the result.
    pub mlp_factors: Option<[f32; 2]>,
    /// Factor on q·k; 1/√head_dim if `None`.
    pub attention_scale: Option<f32>,
    pub attention_softcap: Option<f32>,
    /// Factor on logits, before a cap.
    pub logit_scale: Option<f32>,
    /// Logits become cap·tanh(logit / cap).
    pub logit_softcap: Option<f32>,
    /// True if q_proj holds a gate for each head, and the attention's output is multiplied by its sigmoid.
    pub output_gate: bool,
    /// The sizes of attention over latent keys and values, in place of the projections of q, k and v. `head_dim` then is the size
    /// of a head in the attention operation.
    pub latent: Option<LatentShape>,
    /// The layers with a recurrence; `None` for a model without such layers.
    pub recurrent_layers: Option<RecurrentLayers>,
    /// Set if recurrent layers have attention too.
    pub parallel: Option<ParallelMixers>,
    /// Sliding window of each layer: the number of latest keys that a query sees; all if `None`.
    pub windows: Vec<Option<usize>>,
    /// Factor on embedded tokens.
    pub embedding_scale: Option<f32>,
    /// True if the last norm also applies to the input of the first block.
    pub embedding_norm: bool,
    /// Factor on what a block adds to the residual stream.
    pub residual_scale: Option<f32>,
    /// True if the head is the embedding matrix.
    pub tie_word_embeddings: bool,
    pub head: HeadKind,
    pub max_position_embeddings: usize,
    /// Standard deviation of random initial weights.
    pub initializer_range: f64,
    /// The form of the matrices of linear layers, if it is not float32.
    pub quantization: Option<FourBit>,
    /// The names and the layout of the parameters in this family's files.
    pub naming: &'static Naming,
}

impl DecoderConfig {
    /// The scoring of attention in a layer.
    pub fn scoring(&self, layer: usize) -> AttentionScoring {
        let scale = self.attention_scale.unwrap_or(1.0 / (self.attention(layer).head_dim as f32).sqrt());
        AttentionScoring { scale, softcap: self.attention_softcap, window: self.windows[layer] }
    }

    /// The rotation of layers without a window, or of all layers, and the number of dimensions of a head over which it is defined.
    pub(crate) fn rope(&self) -> Option<(&RopeConfig, usize)> {
        let Positions::Rotary(rope) = &self.positions else { return None };
        Some((rope, self.latent.map_or(self.global_head_dim(), |latent| latent.rotating)))
    }

    /// The rotation of layers with a window, if it differs, with its number of dimensions.
    pub(crate) fn window_rope(&self) -> Option<(&RopeConfig, usize)> {
        self.local_rope.as_ref().map(|rope| (rope, self.head_dim))
    }

    /// The rotations of the layers, each with its number of dimensions.
    pub(crate) fn ropes(&self) -> impl Iterator<Item = (&RopeConfig, usize)> {
        self.rope().into_iter().chain(self.window_rope())
    }

    /// The kind of a recurrent layer; `None` for a layer of attention alone.
    pub fn recurrent(&self, layer: usize) -> Option<RecurrentKind> {
        self.recurrent_layers.as_ref().filter(|recurrent| recurrent.layers[layer]).map(|recurrent| recurrent.kind)
    }

    /// The number of recurrent layers.
    pub(crate) fn recurrent_count(&self) -> usize {
        self.recurrent_layers.as_ref().map_or(0, |recurrent| recurrent.layers.iter().filter(|is| **is).count())
    }

    /// The location of a parameter in files. For experts, this is the tensor that all of them share in transformers' modules;
    /// files may hold them one by one.
    pub fn place(&self, parameter: &str) -> TensorLocation {
        if let Some(experts) = FileExperts::of(parameter) {
            return TensorLocation { name: experts.of_all(self.naming).0, part: None, in_pairs: false, transposed: false };
        }
        match (self.head, parameter.strip_prefix("lm_head.")) {
            (HeadKind::Classifier { name, .. }, Some(rest)) => {
                TensorLocation { name: format!("{name}.{rest}"), part: None, in_pairs: false, transposed: false }
            }
            _ => self.naming.place(parameter),
        }
    }
}

impl HfReader<'_> {
    /// Returns a decoder of these sizes with the most common switches. Callers change the fields that differ.
    pub fn shape(
        &self,
        hidden: usize,
        heads: usize,
        kv_heads: usize,
        intermediate: usize,
        layers: usize,
    ) -> Result<DecoderConfig> {
        Ok(DecoderConfig {
            vocab_size: self.usize("vocab_size")?,
            hidden_size: hidden,
            intermediate_size: intermediate,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: kv_heads,
            head_dim: hidden / heads,
            norm: NormKind::Rms { offset: 0.0 },
            norm_eps: 1e-6,
            residual: Residual::Sequential,
            positions: Positions::Learned,
            mixture: None,
            gated: true,
            activation: Act::Silu,
            local_rope: None,
            rotates: vec![true; layers],
            query_scaling: None,
            qk_norm: QkNorm::None,
            value_norm: false,
            global_attention: None,
            shared_layers: 0,
            double_wide: false,
            layer_inputs: None,
            layer_scalars: false,
            attention_sinks: false,
            qkv_bias: false,
            o_bias: false,
            mlp_bias: false,
            mlp_factors: None,
            attention_scale: None,
            attention_softcap: None,
            logit_scale: None,
            logit_softcap: None,
            output_gate: false,
            latent: None,
            recurrent_layers: None,
            parallel: None,
            windows: vec![None; layers],
            embedding_scale: None,
            embedding_norm: false,
            residual_scale: None,
            tie_word_embeddings: self.bool_or("tie_word_embeddings", false)?,
            head: HeadKind::Language,
            max_position_embeddings: self.usize_or("max_position_embeddings", 2048)?,
            initializer_range: self.f64_or("initializer_range", 0.02)?,
            quantization: None,
            naming: &naming::HUGGING_FACE,
        })
    }

    /// Returns the decoder that descendants of Llama share, without their activation: RMSNorm, gated MLP, rotary positions.
    pub fn gated(&self, kv_heads: usize) -> Result<DecoderConfig> {
        self.rotating(kv_heads, RopeConfig::read_whole(self, 10_000.0)?)
    }

    /// Returns [`Self::gated`] with this rotation.
    pub(crate) fn rotating(&self, kv_heads: usize, rope: RopeConfig) -> Result<DecoderConfig> {
        let (hidden, heads) = (self.usize("hidden_size")?, self.heads("num_attention_heads")?);
        let shape = self.shape(hidden, heads, kv_heads, self.usize("intermediate_size")?, self.layers("num_hidden_layers")?)?;
        Ok(DecoderConfig {
            head_dim: self.head_dim()?,
            norm_eps: self.f64_or("rms_norm_eps", 1e-6)?,
            positions: Positions::Rotary(rope),
            ..shape
        })
    }

    /// Returns [`Self::gated`] with the activation that `hidden_act` names.
    pub(crate) fn llama_like(&self, kv_heads: usize) -> Result<DecoderConfig> {
        Ok(DecoderConfig { activation: self.act_or("hidden_act", "silu")?, ..self.gated(kv_heads)? })
    }

    /// Reads `num_key_value_heads`, by default the number of heads.
    pub(crate) fn kv_heads(&self) -> Result<usize> {
        self.usize_or("num_key_value_heads", self.usize("num_attention_heads")?)
    }
}
