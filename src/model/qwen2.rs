//! Qwen2 and Qwen2.5 (`Qwen2ForCausalLM`): the Llama decoder with biases on the q, k and v projections.

use super::config::{DecoderConfig, Family};

pub const FAMILY: Family = Family {
    model_type: "qwen2",
    doc: "Qwen2 and Qwen2.5: the Llama decoder with biases on q, k and v",
    read: |config| {
        config.only("use_sliding_window", false.into())?;
        Ok(DecoderConfig { qkv_bias: true, ..config.common()? })
    },
};
