//! gpt-oss (`GptOssForCausalLM`): attention with sinks, every other layer with a window; mixtures of experts with biases.

use anyhow::ensure;

use super::Family;
use crate::config::DecoderConfig;
use crate::experts::{ExpertAct, ExpertLayout, MixtureConfig, RouterConfig};
use crate::naming::{Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "gpt_oss",
    class: "GptOss",
    doc: "gpt-oss: attention with sinks and windows, mixtures of experts with biases; reads MXFP4, writes float32",
    read: |config| {
        // transformers assumes other values than this reader.
        for key in ["head_dim", "sliding_window"] {
            ensure!(config.get(key).is_some(), "`{key}` is missing");
        }
        let has_rope = config.get("rope_parameters").or(config.get("rope_scaling")).is_some();
        ensure!(has_rope, "`rope_parameters` is missing, with the base and the factor of YaRN");
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let layers = common.num_hidden_layers;
        // Other names of `num_experts_per_tok` and of the original length in published files.
        config.unused(&["experts_per_token", "initial_context_length"]);
        let attention_bias = config.bool_or("attention_bias", true)?;
        let mixture = config.mixture(&["num_local_experts", "num_experts"], "intermediate_size", layers)?;
        Ok(DecoderConfig {
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            attention_sinks: true,
            qkv_bias: attention_bias,
            o_bias: attention_bias,
            windows: config.windows(layers, |layer| layer % 2 == 0)?,
            mixture: Some(MixtureConfig {
                act: ExpertAct::Clamped {
                    alpha: config.f64_or("swiglu_alpha", 1.702)?,
                    limit: config.f64_or("swiglu_limit", 7.0)?,
                },
                bias: true,
                router: RouterConfig { bias: true, ..mixture.router },
                layout: ExpertLayout::Interleaved,
                ..mixture
            }),
            naming: &NAMING,
            ..common
        })
    },
};

static NAMING: Naming = Naming { replace: &[(".mlp.gate.", ".mlp.router.")], ..PLAIN };
