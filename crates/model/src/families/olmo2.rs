//! OLMo 2 (`Olmo2ForCausalLM`): the Llama decoder with norms behind attention and MLP, and over all queries and all keys.

use anyhow::Result;

use super::Family;
use crate::config::{DecoderConfig, QkNorm, Residual};
use crate::hf_reader::HfReader;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "olmo2",
    class: "Olmo2",
    doc: "OLMo 2: the Llama decoder with norms behind attention and MLP, and over all queries and keys",
    read: |config| common(config, RopeConfig::read_whole(config, 10_000.0)?),
};

/// The configuration that OLMo 2 and OLMo 3 share.
pub(super) fn common(config: &HfReader, rope: RopeConfig) -> Result<DecoderConfig> {
    let bias = config.bool_or("attention_bias", false)?;
    Ok(DecoderConfig {
        activation: config.act_or("hidden_act", "silu")?,
        norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
        residual: Residual::Behind,
        qk_norm: QkNorm::AllHeads,
        qkv_bias: bias,
        o_bias: bias,
        ..config.rotating(config.kv_heads()?, rope)?
    })
}
