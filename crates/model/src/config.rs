//! The shape and switches of the shared decoder. [`super::hf_config`] reads them from config.json, family by family.

use anyhow::{Result, bail};

use super::hf_reader::HfReader;
use super::naming::{self, Naming, TensorLocation};
use super::ops::{Act, AttentionScoring};
use super::rope::RopeConfig;

/// The order of normalisation and addition around a block's attention and MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// x += attention(norm(x)), then x += mlp(norm(x)).
    Sequential,
    /// x += attention(norm₁(x)) + mlp(norm₂(x)) (GPT-NeoX).
    Parallel,
    /// Like `Sequential`, with each result normalised before it is added (Gemma 2).
    Sandwich,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormKind {
    /// x / rms(x) · (offset + w); Gemma stores w − 1, so its offset is 1.
    Rms { offset: f64 },
    /// (x − mean) / deviation · w + b
    Layer,
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
    /// down(act(gate(x)) · up(x)) if true, else down(act(up(x))).
    pub gated: bool,
    pub activation: Act,
    /// True if each head of queries and keys has an RMSNorm, before rotation.
    pub qk_norm: bool,
    /// True if the q, k and v projections have biases.
    pub qkv_bias: bool,
    /// True if the output projection has a bias.
    pub o_bias: bool,
    pub mlp_bias: bool,
    /// Factor on q·k; 1/√head_dim if `None`.
    pub attention_scale: Option<f32>,
    pub attention_softcap: Option<f32>,
    /// Logits become cap·tanh(logit / cap).
    pub logit_softcap: Option<f32>,
    /// Sliding window of each layer: the number of latest keys that a query sees; all if `None`.
    pub windows: Vec<Option<usize>>,
    /// Factor on embedded tokens.
    pub embedding_scale: Option<f32>,
    /// True if the head is the embedding matrix.
    pub tie_word_embeddings: bool,
    pub head: HeadKind,
    pub max_position_embeddings: usize,
    /// Standard deviation of random initial weights.
    pub initializer_range: f64,
    /// The names and the layout of the parameters in this family's files.
    pub naming: &'static Naming,
}

impl DecoderConfig {
    /// The scoring of attention in a layer.
    pub fn scoring(&self, layer: usize) -> AttentionScoring {
        let scale = self.attention_scale.unwrap_or(1.0 / (self.head_dim as f32).sqrt());
        AttentionScoring { scale, softcap: self.attention_softcap, window: self.windows[layer] }
    }

    /// The location of a parameter in files.
    pub fn place(&self, parameter: &str) -> TensorLocation {
        match (self.head, parameter.strip_prefix("lm_head.")) {
            (HeadKind::Classifier { name, .. }, Some(rest)) => {
                TensorLocation { name: format!("{name}.{rest}"), part: None, transposed: false }
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
            gated: true,
            activation: Act::Silu,
            qk_norm: false,
            qkv_bias: false,
            o_bias: false,
            mlp_bias: false,
            attention_scale: None,
            attention_softcap: None,
            logit_softcap: None,
            windows: vec![None; layers],
            embedding_scale: None,
            tie_word_embeddings: self.bool_or("tie_word_embeddings", false)?,
            head: HeadKind::Language,
            max_position_embeddings: self.usize_or("max_position_embeddings", 2048)?,
            initializer_range: self.f64_or("initializer_range", 0.02)?,
            naming: &naming::HUGGING_FACE,
        })
    }

    /// Returns the decoder that descendants of Llama share, without their activation: RMSNorm, gated MLP, rotary positions.
    pub fn gated(&self, kv_heads: usize) -> Result<DecoderConfig> {
        let (hidden, heads) = (self.usize("hidden_size")?, self.heads("num_attention_heads")?);
        let rope = RopeConfig::read(self, "rope_theta", "partial_rotary_factor", 1.0)?;
        if rope.partial != 1.0 {
            bail!(
                "`partial_rotary_factor: {}` is not supported: in this family whole heads rotate, and transformers ignores the factor or \
                 fails; remove it if the model was trained with whole heads",
                rope.partial
            );
        }
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
}
