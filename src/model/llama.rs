//! Llama 1 to 3.x (`LlamaForCausalLM`): RMSNorm, SwiGLU, rotary positions with llama3 scaling, grouped key/value heads.

use super::config::{DecoderConfig, Family};

pub const FAMILY: Family = Family {
    model_type: "llama",
    doc: "Llama 1-3.x: RMSNorm, SwiGLU, rotary positions (default, linear, llama3 scaling), grouped-query attention",
    read: |config| {
        // pretraining_tp > 1 only reorders a sum in transformers; refuse it rather than differ in the last digits.
        config.only("pretraining_tp", 1.into())?;
        let attention_bias = config.bool_or("attention_bias", false)?;
        Ok(DecoderConfig {
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            ..config.common()?
        })
    },
};
