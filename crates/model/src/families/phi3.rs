//! Phi-3 and Phi-4 (`Phi3ForCausalLM`): the Llama decoder whose files hold q, k and v as one matrix, and gate and up as another.

use anyhow::{bail, ensure};

use super::Family;
use crate::config::DecoderConfig;
use crate::naming::{FusedQkv, Naming, PLAIN};
use crate::rope::{RopeConfig, RopeScaling};

pub(super) const FAMILY: Family = Family {
    model_type: "phi3",
    class: "Phi3",
    doc: "Phi-3, Phi-3.5 and Phi-4 (mini too): the Llama decoder in fused files, LongRoPE, partly rotating heads",
    read: |config| {
        // transformers' Phi-3 has one window for all layers, no biases, and does not read the other keys of published files.
        config.unused(&["layer_types", "full_attn_mod", "interpolate_factor"]);
        config.only("attention_bias", false.into())?;
        config.only("mlp_bias", false.into())?;
        config.only("lm_head_bias", false.into())?;
        let rope = RopeConfig::read(config, "rope_theta", "partial_rotary_factor", 1.0)?;
        match rope.scaling {
            RopeScaling::Default => _ = config.get("original_max_position_embeddings"),
            // Without the key, transformers takes its default in place of a value among the rope parameters.
            RopeScaling::LongRope { original, .. } => ensure!(
                config.usize_or("original_max_position_embeddings", 4096)? == original,
                "`original_max_position_embeddings` is missing; Phi-3 reads it outside the rope parameters"
            ),
            _ => bail!("Phi-3 rotates by the rope type default or longrope only"),
        }
        let common = config.rotating(config.kv_heads()?, rope)?;
        Ok(DecoderConfig {
            activation: config.act_or("hidden_act", "silu")?,
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            windows: vec![config.window_or(None)?; common.num_hidden_layers],
            naming: &NAMING,
            ..common
        })
    },
};

static NAMING: Naming = Naming { fused_qkv: Some(FusedQkv::Blocks), fused_gate_up: true, ..PLAIN };
