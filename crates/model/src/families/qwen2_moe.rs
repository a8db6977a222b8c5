//! Qwen2-MoE and Qwen1.5-MoE (`Qwen2MoeForCausalLM`): the decoder of Qwen2 with mixtures of experts and a shared expert.

use super::Family;
use crate::config::DecoderConfig;
use crate::experts::{MixtureConfig, RouterConfig, SharedExpert};

pub(super) const FAMILY: Family = Family {
    model_type: "qwen2_moe",
    class: "Qwen2Moe",
    doc: "Qwen2-MoE and Qwen1.5-MoE: the decoder of Qwen2 with mixtures of experts and a shared expert",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let layers = common.num_hidden_layers;
        let mixture = config.mixture(&["num_experts", "num_local_experts"], "moe_intermediate_size", layers)?;
        let first = config.usize_or("max_window_layers", 28)?;
        let windows = match config.bool_or("use_sliding_window", false)? {
            true => config.windows(layers, |layer| layer % 2 == 0 && layer < first)?,
            false => {
                config.unused(&["sliding_window", "layer_types"]);
                vec![None; layers]
            }
        };
        let shared = SharedExpert { intermediate_size: config.heads("shared_expert_intermediate_size")?, gated: true };
        Ok(DecoderConfig {
            qkv_bias: config.bool_or("qkv_bias", true)?,
            windows,
            mixture: Some(MixtureConfig {
                router: RouterConfig { scores: config.softmax_scores(false)?, ..mixture.router },
                layers: config.sparse_layers(layers)?,
                shared: Some(shared),
                ..mixture
            }),
            ..common
        })
    },
};
