//! Qwen3 (`Qwen3ForCausalLM`): the Llama decoder with an RMSNorm on each head of the queries and keys.

use super::{Family, qwen2};
use crate::config::{DecoderConfig, QkNorm};

pub(super) const FAMILY: Family = Family {
    model_type: "qwen3",
    class: "Qwen3",
    doc: "Qwen3 (dense): the Llama decoder with normalised queries and keys",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let attention_bias = config.bool_or("attention_bias", false)?;
        Ok(DecoderConfig {
            head_dim: config.usize("head_dim")?,
            qk_norm: QkNorm::PerHead,
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            windows: qwen2::windows(config, common.num_hidden_layers)?,
            ..common
        })
    },
};
