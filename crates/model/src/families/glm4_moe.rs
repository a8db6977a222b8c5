//! GLM-4.5 (`Glm4MoeForCausalLM`): partial rotary positions, mixtures of experts chosen by biased sigmoids, and shared experts.

use super::Family;
use crate::config::{DecoderConfig, Positions, QkNorm};
use crate::experts::{GroupedDefaults, MixtureConfig, RouterConfig, RouterScores};
use crate::naming::{Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "glm4_moe",
    class: "Glm4Moe",
    doc: "GLM-4.5: partial rotary positions, mixtures of experts chosen by biased sigmoids, shared experts",
    read: |config| {
        let (hidden, heads) = (config.usize("hidden_size")?, config.heads("num_attention_heads")?);
        let layers = config.layers("num_hidden_layers")?;
        let shape =
            config.shape(hidden, heads, config.usize("num_key_value_heads")?, config.usize("intermediate_size")?, layers)?;
        let attention_bias = config.bool_or("attention_bias", false)?;
        let mixture = config.grouped_mixture(layers, &GroupedDefaults { groups: (1, 1), dense: 1, shared: 1, scale: 1.0 })?;
        Ok(DecoderConfig {
            head_dim: config.head_dim()?,
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            activation: config.act_or("hidden_act", "silu")?,
            positions: Positions::Rotary(RopeConfig::read(config, "rope_theta", "partial_rotary_factor", 0.5)?),
            qk_norm: if config.bool_or("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::None },
            qkv_bias: attention_bias,
            mixture: Some(MixtureConfig {
                router: RouterConfig {
                    scores: RouterScores::Sigmoid { normalised: config.bool_or("norm_topk_prob", true)? },
                    choice_bias: true,
                    best_of_group: 2,
                    ..mixture.router
                },
                ..mixture
            }),
            naming: &NAMING,
            ..shape
        })
    },
};

static NAMING: Naming = Naming {
    replace: &[
        (".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
        (".mlp.shared_expert.", ".mlp.shared_experts."),
    ],
    ..PLAIN
};
