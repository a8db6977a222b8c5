//! GPT-2 (`GPT2LMHeadModel`): LayerNorm, the tanh form of GELU, learned positions; its files hold transposed matrices.

use super::Family;
use crate::config::{DecoderConfig, NormKind, Positions};
use crate::naming::{FusedQkv, Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "gpt2",
    class: "GPT2",
    doc: "GPT-2 and DistilGPT-2: LayerNorm, GELU, learned positions",
    read: |config| {
        config.only("scale_attn_by_inverse_layer_idx", false.into())?;
        config.only("add_cross_attention", false.into())?;
        // Reordering and upcasting only matter in half precision; scores are f32 here.
        config.unused(&["reorder_and_upcast_attn", "n_ctx", "attn_pdrop", "embd_pdrop", "resid_pdrop"]);
        let (hidden_size, heads) = (config.usize("n_embd")?, config.heads("n_head")?);
        config.divided(hidden_size, heads)?;
        let unscaled = !config.bool_or("scale_attn_weights", true)?;
        let intermediate = config.usize_or("n_inner", 4 * hidden_size)?;
        Ok(DecoderConfig {
            qkv_bias: true,
            o_bias: true,
            mlp_bias: true,
            gated: false,
            activation: config.act_or("activation_function", "gelu_new")?,
            norm: NormKind::Layer,
            norm_eps: config.f64_or("layer_norm_epsilon", 1e-5)?,
            positions: Positions::Learned,
            max_position_embeddings: config.usize_or("n_positions", 1024)?,
            attention_scale: unscaled.then_some(1.0),
            tie_word_embeddings: config.bool_or("tie_word_embeddings", true)?,
            naming: &NAMING,
            ..config.shape(hidden_size, heads, heads, intermediate, config.layers("n_layer")?)?
        })
    },
};

static NAMING: Naming = Naming {
    replace: &[
        ("model.embed_tokens.", "transformer.wte."),
        ("model.embed_positions.", "transformer.wpe."),
        ("model.layers.", "transformer.h."),
        ("model.norm.", "transformer.ln_f."),
        (".input_layernorm.", ".ln_1."),
        (".post_attention_layernorm.", ".ln_2."),
        (".self_attn.qkv_proj.", ".attn.c_attn."),
        (".self_attn.o_proj.", ".attn.c_proj."),
        (".mlp.up_proj.", ".mlp.c_fc."),
        (".mlp.down_proj.", ".mlp.c_proj."),
    ],
    fused_qkv: Some(FusedQkv::Blocks),
    transposed: true,
    classifier: "classifier",
    buffers: &[".attn.bias", ".attn.masked_bias"],
    ..PLAIN
};
