//! LFM2-MoE (`Lfm2MoeForCausalLM`): the decoder of LFM2, with mixtures of experts after the first layers.

use anyhow::ensure;

use super::{Family, lfm2};
use crate::config::DecoderConfig;
use crate::experts::{MixtureConfig, RouterConfig, RouterScores};

pub(super) const FAMILY: Family = Family {
    model_type: "lfm2_moe",
    class: "Lfm2Moe",
    doc: "LFM2-MoE: gated short convolutions, attention in some layers, mixtures of experts chosen by biased sigmoids",
    read: |config| {
        ensure!(config.get("layer_types").is_some(), "`layer_types` is missing, with `conv` or `full_attention` for each layer");
        config.only("hidden_act", "silu".into())?;
        let common = lfm2::common(config, config.usize("intermediate_size")?, 1e6, |_| false)?;
        let layers = common.num_hidden_layers;
        let mixture = config.mixture(&["num_experts"], "moe_intermediate_size", layers)?;
        let dense = config.usize_or("num_dense_layers", 2)?;
        let router = RouterConfig {
            scores: RouterScores::Sigmoid { normalised: config.bool_or("norm_topk_prob", true)? },
            choice_bias: config.bool_or("use_expert_bias", true)?,
            sum_eps: 1e-6,
            scale: config.f64_or("routed_scaling_factor", 1.0)?,
            ..mixture.router
        };
        let layers = (0..layers).map(|layer| layer >= dense).collect();
        Ok(DecoderConfig { mixture: Some(MixtureConfig { router, layers, ..mixture }), ..common })
    },
};
