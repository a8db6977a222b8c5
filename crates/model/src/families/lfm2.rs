//! LFM2 (`Lfm2ForCausalLM`): gated short convolutions, with attention in some layers.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Family;
use crate::config::{DecoderConfig, Positions, QkNorm};
use crate::hf_reader::HfReader;
use crate::linear_attention::{RecurrentKind, RecurrentLayers};
use crate::naming::{Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "lfm2",
    class: "Lfm2",
    doc: "LFM2 (dense): gated short convolutions, with attention of normalised queries and keys in some layers",
    read: |config| {
        let layers = config.layers("num_hidden_layers")?;
        let mut intermediate =
            config.usize(if config.get("block_ff_dim").is_some() { "block_ff_dim" } else { "intermediate_size" })?;
        config.unused(&["intermediate_size"]);
        // Keys of published files that transformers does not read.
        config.unused(&[
            "block_dim",
            "block_mlp_init_scale",
            "block_norm_eps",
            "block_out_init_scale",
            "block_use_xavier_init",
            "conv_dim",
            "conv_dim_out",
            "conv_use_xavier_init",
            "num_heads",
        ]);
        config.only("block_use_swiglu", true.into())?;
        config.only("use_pos_enc", true.into())?;
        // transformers prefers `theta`.
        if let Some(theta) = config.get("theta") {
            let agrees = config.get("rope_theta").is_none_or(|rope| rope.as_f64() == theta.as_f64());
            ensure!(agrees, "`theta` and `rope_theta` differ");
        }
        let (multiple, factor) = (config.heads_or("block_multiple_of", 256)?, config.f64_or("block_ffn_dim_multiplier", 1.0)?);
        ensure!(factor > 0.0 && factor <= 1e6, "`block_ffn_dim_multiplier` is {factor}; it must be above 0, to 1e6");
        if config.bool_or("block_auto_adjust_ff_dim", true)? {
            intermediate = ((2 * intermediate / 3) as f64 * factor) as usize;
            intermediate = intermediate.next_multiple_of(multiple);
        }
        let index = |item: &Value| item.as_u64().filter(|layer| (*layer as usize) < layers);
        let list = |value: &Value| {
            let all = value.as_array().and_then(|all| all.iter().map(index).collect::<Option<Vec<u64>>>());
            all.with_context(|| format!("`full_attn_idxs` must list layers below {layers}, not {value}"))
        };
        let attends: Option<Vec<u64>> = config.get("full_attn_idxs").map(list).transpose()?;
        let is_conv = |layer: usize| attends.as_ref().is_some_and(|attends| !attends.contains(&(layer as u64)));
        common(config, intermediate, config.f64_or("theta", 1e6)?, is_conv)
    },
};

/// The decoder that LFM2 and LFM2-MoE share. `theta` is the base of rotary positions without one in `rope_parameters`; `is_conv`
/// tells the layers of convolutions without `layer_types`.
pub(super) fn common(
    config: &HfReader,
    intermediate: usize,
    theta: f64,
    is_conv: impl Fn(usize) -> bool,
) -> Result<DecoderConfig> {
    let (heads, layers) = (config.heads("num_attention_heads")?, config.layers("num_hidden_layers")?);
    let key_heads = config.usize("num_key_value_heads")?;
    let bias = config.bool_or("conv_bias", false)?;
    let tied = config.bool_or("tie_word_embeddings", true)?;
    Ok(DecoderConfig {
        head_dim: config.head_dim()?,
        norm_eps: config.f64_or("norm_eps", 1e-5)?,
        positions: Positions::Rotary(RopeConfig::read_whole(config, theta)?),
        qk_norm: QkNorm::PerHead,
        tie_word_embeddings: config.bool_or("tie_embedding", tied)?,
        recurrent_layers: Some(RecurrentLayers {
            layers: config.recurrent(layers, "conv", is_conv)?,
            kind: RecurrentKind::ShortConv { kernel: config.kernel("conv_L_cache", 3)?, bias },
        }),
        naming: &NAMING,
        ..config.shape(config.usize("hidden_size")?, heads, key_heads, intermediate, layers)?
    })
}

static NAMING: Naming = Naming {
    replace: &[
        ("model.norm.", "model.embedding_norm."),
        (".input_layernorm.", ".operator_norm."),
        (".post_attention_layernorm.", ".ffn_norm."),
        (".mlp.e_score_correction_bias", ".feed_forward.expert_bias"),
        (".mlp.", ".feed_forward."),
        (".gate_proj.", ".w1."),
        (".up_proj.", ".w3."),
        (".down_proj.", ".w2."),
        (".self_attn.q_norm.", ".self_attn.q_layernorm."),
        (".self_attn.k_norm.", ".self_attn.k_layernorm."),
        (".self_attn.o_proj.", ".self_attn.out_proj."),
    ],
    experts: ".feed_forward.experts",
    ..PLAIN
};
