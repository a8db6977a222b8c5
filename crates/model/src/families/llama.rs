//! Llama 1 to 3.x (`LlamaForCausalLM`): RMSNorm, SwiGLU, rotary positions, grouped key/value heads.

use anyhow::ensure;
use serde_json::Value;

use super::Family;
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "llama",
    class: "Llama",
    doc: "Llama 1-3.x: RMSNorm, SwiGLU, rotary positions with every rope_scaling, grouped-query attention",
    read: |config| {
        // pretraining_tp > 1 only reorders a sum in transformers. It is refused, because the last digits would differ.
        config.only("pretraining_tp", 1.into())?;
        config.only("rope_interleaved", false.into())?;
        // transformers' Llama does not read windows. Layers of another kind would be another model.
        config.unused(&["sliding_window", "use_sliding_window"]);
        for kind in config.get("layer_types").and_then(Value::as_array).into_iter().flatten() {
            ensure!(kind == "full_attention", "`layer_types`: {kind} is not supported; a Llama has only full_attention");
        }
        let attention_bias = config.bool_or("attention_bias", false)?;
        let heads = config.usize("num_attention_heads")?;
        Ok(DecoderConfig {
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            ..config.llama_like(config.usize_or("num_key_value_heads", heads)?)?
        })
    },
};
