//! Seed-OSS (`SeedOssForCausalLM`): the Llama decoder with biases on q, k and v, and wide heads.

use super::Family;
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "seed_oss",
    class: "SeedOss",
    doc: "Seed-OSS: the Llama decoder with biases on q, k and v",
    read: |config| {
        config.only("pretraining_tp", 1.into())?;
        Ok(DecoderConfig {
            head_dim: config.usize_or("head_dim", 128)?,
            qkv_bias: config.bool_or("attention_bias", true)?,
            o_bias: config.bool_or("attention_out_bias", false)?,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            ..config.llama_like(config.usize_or("num_key_value_heads", 8)?)?
        })
    },
};
