//! GLM-4 as published in 2024 (`GlmForCausalLM`): the Llama decoder with biases on q, k and v, half of each head rotating in pairs
//! of neighbours, and gate and up as one matrix.

use anyhow::Result;

use super::Family;
use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;
use crate::naming::{Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "glm",
    class: "Glm",
    doc: "GLM-4-9B and GLM-Edge: the Llama decoder in fused files, half of each head rotating in pairs of neighbours",
    read: |config| Ok(DecoderConfig { naming: &NAMING, ..common(config)? }),
};

/// The configuration that GLM and GLM-4-0414 share.
pub(super) fn common(config: &HfReader) -> Result<DecoderConfig> {
    let rope = RopeConfig::read(config, "rope_theta", "partial_rotary_factor", 0.5)?;
    Ok(DecoderConfig {
        activation: config.act_or("hidden_act", "silu")?,
        head_dim: config.usize_or("head_dim", 128)?,
        norm_eps: config.f64_or("rms_norm_eps", 1.5625e-7)?,
        qkv_bias: config.bool_or("attention_bias", true)?,
        ..config.rotating(config.usize_or("num_key_value_heads", 2)?, rope)?
    })
}

static NAMING: Naming = Naming { fused_gate_up: true, rotates_pairs: true, ..PLAIN };
