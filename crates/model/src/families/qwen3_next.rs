//! Qwen3-Next (`Qwen3NextForCausalLM`): gated delta nets, gated attention in every fourth layer, and mixtures of experts.

use anyhow::{Result, ensure};

use super::Family;
use crate::config::{DecoderConfig, NormKind, Positions, QkNorm};
use crate::experts::{MixtureConfig, RouterConfig, SharedExpert};
use crate::hf_reader::HfReader;
use crate::linear_attention::{DeltaNetShape, RecurrentKind, RecurrentLayers};
use crate::naming::{Naming, PLAIN};
use crate::ops::DeltaHeads;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "qwen3_next",
    class: "Qwen3Next",
    doc: "Qwen3-Next: gated delta nets, with gated attention in every fourth layer, and mixtures of experts",
    read: |config| {
        let layers = config.sparse_layers(config.layers("num_hidden_layers")?)?;
        let has_experts = config.usize_or("num_experts", 512)? > 0 && layers.contains(&true);
        let common = common(config, true, has_experts && !layers.contains(&false))?;
        if !has_experts {
            config.unused(&[
                "moe_intermediate_size",
                "shared_expert_intermediate_size",
                "num_experts_per_tok",
                "norm_topk_prob",
                "output_router_logits",
                "router_aux_loss_coef",
            ]);
            return Ok(common);
        }
        let scores = config.softmax_scores(true)?;
        let mixture = mixture(config, common.num_hidden_layers)?;
        let router = RouterConfig { scores, ..mixture.router };
        Ok(DecoderConfig { mixture: Some(MixtureConfig { router, layers, ..mixture }), ..common })
    },
};

static NAMING: Naming = Naming { replace: &[(".linear_attn.a_log", ".linear_attn.A_log")], ..PLAIN };

/// The mixtures that Qwen3-Next and Qwen3.5-MoE share: experts and a gated shared expert in every layer.
pub(super) fn mixture(config: &HfReader, layers: usize) -> Result<MixtureConfig> {
    let shared = SharedExpert { intermediate_size: config.heads("shared_expert_intermediate_size")?, gated: true };
    Ok(MixtureConfig { shared: Some(shared), ..config.mixture(&["num_experts"], "moe_intermediate_size", layers)? })
}

/// The decoder that Qwen3-Next and Qwen3.5 share. `fused`: files hold the projections of a delta net as two matrices. `sparse`: every
/// layer has a mixture.
pub(super) fn common(config: &HfReader, fused: bool, sparse: bool) -> Result<DecoderConfig> {
    config.only("attn_output_gate", true.into())?;
    let (hidden, heads, layers) =
        (config.usize("hidden_size")?, config.heads("num_attention_heads")?, config.layers("num_hidden_layers")?);
    // Published mixtures have no MLP and may lack its size.
    let has_size = config.get("intermediate_size").is_some() || !sparse;
    let intermediate = config.usize(if has_size { "intermediate_size" } else { "moe_intermediate_size" })?;
    let shape = config.shape(hidden, heads, config.usize("num_key_value_heads")?, intermediate, layers)?;
    let attention_bias = config.bool_or("attention_bias", false)?;
    Ok(DecoderConfig {
        head_dim: config.usize_or("head_dim", 256)?,
        norm: NormKind::Rms { offset: 1.0 },
        norm_eps: config.f64_or("rms_norm_eps", 1e-6)?,
        positions: Positions::Rotary(RopeConfig::read(config, "rope_theta", "partial_rotary_factor", 0.25)?),
        activation: config.act_or("hidden_act", "silu")?,
        qk_norm: QkNorm::PerHead,
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        output_gate: true,
        recurrent_layers: Some(recurrent_layers(config, layers, fused)?),
        naming: &NAMING,
        ..shape
    })
}

fn recurrent_layers(config: &HfReader, layers: usize, fused: bool) -> Result<RecurrentLayers> {
    let interval = config.heads_or("full_attention_interval", 4)?;
    let heads = DeltaHeads {
        key_heads: config.heads_or("linear_num_key_heads", 16)?,
        value_heads: config.heads_or("linear_num_value_heads", 32)?,
        key_dim: config.heads_or("linear_key_head_dim", 128)?,
        value_dim: config.heads_or("linear_value_head_dim", 128)?,
    };
    ensure!(
        heads.value_heads.is_multiple_of(heads.key_heads),
        "`linear_num_value_heads` {} must be a multiple of `linear_num_key_heads` {}",
        heads.value_heads,
        heads.key_heads
    );
    let fits = |a: usize, b: usize| a.checked_mul(b).is_some_and(|size| size <= 1 << 40);
    let head = heads.key_dim.checked_mul(heads.value_dim);
    ensure!(
        fits(heads.key_heads, heads.key_dim)
            && fits(heads.value_heads, heads.value_dim)
            && head.is_some_and(|head| fits(heads.value_heads, head)),
        "the `linear_*` sizes are too large"
    );
    // The state of a delta net is f32 here, as this key asks.
    config.only("mamba_ssm_dtype", "float32".into())?;
    Ok(RecurrentLayers {
        layers: config.recurrent(layers, "linear_attention", |layer| !(layer + 1).is_multiple_of(interval))?,
        kind: RecurrentKind::DeltaNet(DeltaNetShape { heads, kernel: config.kernel("linear_conv_kernel_dim", 4)?, fused }),
    })
}
