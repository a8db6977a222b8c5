//! Gemma (`GemmaForCausalLM`): embeddings times √h, norms that store w − 1, a gated GELU, a tied head.

use anyhow::Result;

use super::Family;
use crate::config::{DecoderConfig, NormKind};
use crate::hf_reader::HfReader;
use crate::ops::Act;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "gemma",
    class: "Gemma",
    doc: "Gemma 1 and CodeGemma: scaled embeddings, RMSNorm with 1 + w, GeGLU, a tied head",
    read: |config| {
        // Early releases say `gelu` and mean its tanh form; an additional `hidden_activation` confirms it (transformers:
        // GemmaConfig).
        config.unused(&["hidden_activation"]);
        let activation = match config.act_or("hidden_act", "gelu_pytorch_tanh")? {
            Act::Gelu => Act::GeluTanh,
            other => other,
        };
        Ok(DecoderConfig { activation, ..common(config)? })
    },
};

/// The configuration that Gemma and Gemma 2 share.
pub(super) fn common(config: &HfReader) -> Result<DecoderConfig> {
    of_gated(config, config.gated(config.usize("num_key_value_heads")?)?)
}

/// [`common`] with this rotation.
pub(super) fn rotating(config: &HfReader, rope: RopeConfig) -> Result<DecoderConfig> {
    of_gated(config, config.rotating(config.usize("num_key_value_heads")?, rope)?)
}

fn of_gated(config: &HfReader, common: DecoderConfig) -> Result<DecoderConfig> {
    config.only("use_bidirectional_attention", false.into())?;
    let bias = config.bool_or("attention_bias", false)?;
    Ok(DecoderConfig {
        head_dim: config.usize("head_dim")?,
        qkv_bias: bias,
        o_bias: bias,
        norm: NormKind::Rms { offset: 1.0 },
        embedding_scale: Some((common.hidden_size as f32).sqrt()),
        tie_word_embeddings: config.bool_or("tie_word_embeddings", true)?,
        ..common
    })
}
