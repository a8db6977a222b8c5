//! Qwen3-MoE (`Qwen3MoeForCausalLM`): the decoder of Qwen3 with mixtures of experts.

use super::Family;
use crate::config::{DecoderConfig, QkNorm};
use crate::experts::{MixtureConfig, RouterConfig};

pub(super) const FAMILY: Family = Family {
    model_type: "qwen3_moe",
    class: "Qwen3Moe",
    doc: "Qwen3-MoE: the decoder of Qwen3 with mixtures of experts, also in some layers only",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let layers = common.num_hidden_layers;
        let attention_bias = config.bool_or("attention_bias", false)?;
        let mixture = config.mixture(&["num_experts", "num_local_experts"], "moe_intermediate_size", layers)?;
        config.unused(&["max_window_layers"]);
        let windows = match config.bool_or("use_sliding_window", false)? {
            true => config.windows(layers, |_| true)?,
            false => {
                config.unused(&["sliding_window", "layer_types"]);
                vec![None; layers]
            }
        };
        Ok(DecoderConfig {
            qk_norm: QkNorm::PerHead,
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            windows,
            mixture: Some(MixtureConfig {
                router: RouterConfig { scores: config.softmax_scores(false)?, ..mixture.router },
                layers: config.sparse_layers(layers)?,
                ..mixture
            }),
            ..common
        })
    },
};
