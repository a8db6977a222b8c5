//! Arcee's AFM (`ArceeForCausalLM`): the Llama decoder with an MLP without gate and a squared ReLU.

use super::Family;
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "arcee",
    class: "Arcee",
    doc: "Arcee AFM: the Llama decoder with a squared ReLU and without a gate",
    read: |config| {
        let bias = config.bool_or("attention_bias", false)?;
        Ok(DecoderConfig {
            activation: config.act_or("hidden_act", "relu2")?,
            gated: false,
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            qkv_bias: bias,
            o_bias: bias,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            ..config.gated(config.kv_heads()?)?
        })
    },
};
