//! Granite 3 (`GraniteForCausalLM`): the Llama decoder with factors on embeddings, attention, results of blocks, and logits.

use anyhow::{Result, ensure};

use super::Family;
use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;

pub(super) const FAMILY: Family = Family {
    model_type: "granite",
    class: "Granite",
    doc: "Granite 3: the Llama decoder with factors on embeddings, attention, what blocks add, and logits",
    read: |config| {
        let bias = config.bool_or("attention_bias", false)?;
        let common = config.llama_like(config.kv_heads()?)?;
        let biased = DecoderConfig { qkv_bias: bias, o_bias: bias, mlp_bias: config.bool_or("mlp_bias", false)?, ..common };
        scaled(config, biased)
    },
};

/// Adds the four factors of Granite.
pub(super) fn scaled(config: &HfReader, common: DecoderConfig) -> Result<DecoderConfig> {
    let logits = config.f64_or("logits_scaling", 1.0)?;
    ensure!(logits > 0.0, "`logits_scaling` must be above 0, not {logits}");
    let factor = |key: &str| config.f64_or(key, 1.0).map(|factor| (factor != 1.0).then_some(factor as f32));
    Ok(DecoderConfig {
        embedding_scale: factor("embedding_multiplier")?,
        residual_scale: factor("residual_multiplier")?,
        attention_scale: Some(config.f64_or("attention_multiplier", 1.0)? as f32),
        logit_scale: (logits != 1.0).then_some((1.0 / logits) as f32),
        ..common
    })
}
