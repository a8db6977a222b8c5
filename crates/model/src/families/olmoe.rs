//! OLMoE (`OlmoeForCausalLM`): the Llama decoder with norms over all queries and all keys, and a mixture of experts in every layer.

use super::Family;
use crate::config::{DecoderConfig, QkNorm};
use crate::experts::{MixtureConfig, RouterConfig};

pub(super) const FAMILY: Family = Family {
    model_type: "olmoe",
    class: "Olmoe",
    doc: "OLMoE: the Llama decoder with normalised queries and keys and a mixture of experts in every layer",
    read: |config| {
        config.only("clip_qkv", serde_json::Value::Null)?;
        let heads = config.usize("num_attention_heads")?;
        let common = config.llama_like(config.usize_or("num_key_value_heads", heads)?)?;
        let attention_bias = config.bool_or("attention_bias", false)?;
        let mixture = config.mixture(&["num_experts", "num_local_experts"], "intermediate_size", common.num_hidden_layers)?;
        Ok(DecoderConfig {
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            qk_norm: QkNorm::AllHeads,
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            mixture: Some(MixtureConfig {
                // transformers' default of the coefficient differs from that of other families.
                router: RouterConfig {
                    scores: config.softmax_scores(false)?,
                    aux_loss_coef: match config.bool_or("output_router_logits", false)? {
                        true => config.f64_or("router_aux_loss_coef", 0.01)?,
                        false => 0.0,
                    },
                    ..mixture.router
                },
                ..mixture
            }),
            ..common
        })
    },
};
