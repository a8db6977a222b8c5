//! GLM-4.5 (`Glm4MoeForCausalLM`): partial rotary positions, mixtures of experts chosen by biased sigmoids, and shared experts.

use anyhow::{Context, ensure};

use super::Family;
use crate::config::{DecoderConfig, Positions, QkNorm};
use crate::experts::{MixtureConfig, RouterConfig, RouterScores, SharedExpert};
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
        let mixture = config.mixture(&["n_routed_experts", "num_local_experts"], "moe_intermediate_size", layers)?;
        let (groups, chosen) = (config.usize_or("n_group", 1)?, config.usize_or("topk_group", 1)?);
        ensure!(
            groups > 0 && mixture.experts.is_multiple_of(groups) && (1..=groups).contains(&chosen),
            "`n_group` is {groups} and `topk_group` {chosen}; groups must divide the {} experts",
            mixture.experts
        );
        ensure!(
            mixture.top_k <= chosen * (mixture.experts / groups),
            "`topk_group` is {chosen}: its groups have fewer experts than the {} of a token",
            mixture.top_k
        );
        let dense = config.usize_or("first_k_dense_replace", 1)?;
        let shared = config.usize_or("n_shared_experts", 1)?.checked_mul(mixture.intermediate_size);
        let shared = shared.filter(|size| *size <= 1 << 40).context("`n_shared_experts` is too large")?;
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
                    groups: (groups > 1).then_some((groups, chosen)),
                    best_of_group: 2,
                    scale: config.f64_or("routed_scaling_factor", 1.0)?,
                    ..mixture.router
                },
                shared: (shared > 0).then_some(SharedExpert { intermediate_size: shared, gated: false }),
                layers: (0..layers).map(|layer| layer >= dense).collect(),
                next_token_layers: config.usize_or("num_nextn_predict_layers", 0)?,
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
