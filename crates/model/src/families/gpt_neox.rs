//! GPT-NeoX and Pythia (`GPTNeoXForCausalLM`): LayerNorm, GELU, partial rotary positions, attention and MLP in parallel.

use super::Family;
use crate::config::{DecoderConfig, NormKind, Positions, Residual};
use crate::naming::{FusedQkv, Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "gpt_neox",
    class: "GPTNeoX",
    doc: "GPT-NeoX and Pythia: LayerNorm, GELU, partial rotary positions, parallel attention and MLP",
    read: |config| {
        // Published files name dropouts that transformers does not read.
        config.unused(&["attention_probs_dropout_prob", "hidden_dropout_prob"]);
        let parallel = config.bool_or("use_parallel_residual", true)?;
        let (hidden_size, heads) = (config.usize("hidden_size")?, config.heads("num_attention_heads")?);
        config.divided(hidden_size, heads)?;
        let attention_bias = config.bool_or("attention_bias", true)?;
        Ok(DecoderConfig {
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            mlp_bias: true,
            gated: false,
            activation: config.act_or("hidden_act", "gelu")?,
            norm: NormKind::Layer,
            norm_eps: config.f64_or("layer_norm_eps", 1e-5)?,
            residual: if parallel { Residual::Parallel } else { Residual::Sequential },
            positions: Positions::Rotary(RopeConfig::read(config, "rotary_emb_base", "rotary_pct", 0.25)?),
            naming: &NAMING,
            ..config.shape(hidden_size, heads, heads, config.usize("intermediate_size")?, config.layers("num_hidden_layers")?)?
        })
    },
};

static NAMING: Naming = Naming {
    replace: &[
        ("model.embed_tokens.", "gpt_neox.embed_in."),
        ("model.layers.", "gpt_neox.layers."),
        ("model.norm.", "gpt_neox.final_layer_norm."),
        ("lm_head.", "embed_out."),
        (".self_attn.qkv_proj.", ".attention.query_key_value."),
        (".self_attn.o_proj.", ".attention.dense."),
        (".mlp.up_proj.", ".mlp.dense_h_to_4h."),
        (".mlp.down_proj.", ".mlp.dense_4h_to_h."),
    ],
    fused_qkv: Some(FusedQkv::PerHead),
    classifier: "classifier",
    buffers: &[".attention.bias", ".attention.masked_bias", ".attention.rotary_emb.inv_freq"],
    ..PLAIN
};
