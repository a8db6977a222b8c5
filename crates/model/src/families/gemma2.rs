//! Gemma 2 (`Gemma2ForCausalLM`): Gemma with norms on both sides of attention and MLP, every other layer within a sliding
//! window, and soft caps on attention scores and logits.

use super::{Family, gemma};
use crate::config::{DecoderConfig, Residual};

pub(super) const FAMILY: Family = Family {
    model_type: "gemma2",
    class: "Gemma2",
    doc: "Gemma 2: Gemma with sandwich norms, alternating sliding windows, soft-capped scores and logits",
    read: |config| {
        let common = gemma::common(config)?;
        // transformers reads `hidden_activation` and `sliding_window`; published files have these too.
        config.unused(&["hidden_act", "sliding_window_size"]);
        let scale = config.f64_or("query_pre_attn_scalar", 256.0)?.powf(-0.5);
        Ok(DecoderConfig {
            residual: Residual::Sandwich,
            activation: config.act_or("hidden_activation", "gelu_pytorch_tanh")?,
            attention_scale: Some(scale as f32),
            attention_softcap: config.positive_or("attn_logit_softcapping", 50.0)?,
            logit_softcap: config.positive_or("final_logit_softcapping", 30.0)?,
            windows: config.windows(common.num_hidden_layers, |layer| layer % 2 == 0)?,
            ..common
        })
    },
};
