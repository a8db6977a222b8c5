//! Ministral 3 (`Ministral3ForCausalLM`): Mistral with YaRN, and queries that grow with the position beyond the original length.

use anyhow::ensure;

use super::Family;
use crate::config::DecoderConfig;
use crate::rope::QueryScaling;

pub(super) const FAMILY: Family = Family {
    model_type: "ministral3",
    class: "Ministral3",
    doc: "Ministral 3: Mistral with YaRN, and a factor on queries that grows beyond the original length",
    read: |config| {
        // transformers' Ministral 3 has one window for all layers.
        config.unused(&["layer_types"]);
        ensure!(
            config.get("rope_parameters").or(config.get("rope_scaling")).is_some(),
            "`rope_parameters` is missing; it holds the base, YaRN's factor and llama_4_scaling_beta"
        );
        let common = config.llama_like(config.usize_or("num_key_value_heads", 8)?)?;
        let windows = vec![config.window_or(None)?; common.num_hidden_layers];
        Ok(DecoderConfig {
            head_dim: config.usize_or("head_dim", 128)?,
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            query_scaling: Some(QueryScaling::read(config)?),
            windows,
            ..common
        })
    },
};
