//! SmolLM3 (`SmolLM3ForCausalLM`): the Llama decoder; every fourth layer does not rotate.

use anyhow::{Context, Result, ensure};

use super::Family;
use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "smollm3",
    class: "SmolLM3",
    doc: "SmolLM3: the Llama decoder, every fourth layer without rotary positions",
    read: |config| {
        // Keys of the published file that transformers does not read.
        config.unused(&["pretraining_tp", "max_window_layers"]);
        let bias = config.bool_or("attention_bias", false)?;
        let rope = RopeConfig::read_whole(config, 2e6)?;
        let common = config.rotating(config.usize_or("num_key_value_heads", 4)?, rope)?;
        let rotates = rotates(config, common.num_hidden_layers)?;
        let slides = config.bool_or("use_sliding_window", false)? && config.window_or(None)?.is_some();
        let windows = config.windows(common.num_hidden_layers, |layer| slides && !rotates[layer])?;
        Ok(DecoderConfig {
            qkv_bias: bias,
            o_bias: bias,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            tie_word_embeddings: config.bool_or("tie_word_embeddings", true)?,
            activation: config.act_or("hidden_act", "silu")?,
            rotates,
            windows,
            ..common
        })
    },
};

/// For each layer, true if it rotates: `no_rope_layers` has 1 for such layers. Without it, every `no_rope_layer_interval`-th
/// layer does not.
fn rotates(config: &HfReader, layers: usize) -> Result<Vec<bool>> {
    let interval = config.usize_or("no_rope_layer_interval", 4)?;
    let Some(listed) = config.get("no_rope_layers") else {
        ensure!(interval > 0, "`no_rope_layer_interval` must be at least 1");
        return Ok((0..layers).map(HfReader::is_inside(interval)).collect());
    };
    let numbers = listed.as_array().and_then(|list| list.iter().map(serde_json::Value::as_u64).collect::<Option<Vec<u64>>>());
    let numbers = numbers.filter(|numbers| numbers.len() >= layers);
    let numbers =
        numbers.with_context(|| format!("`no_rope_layers` must have 1 or 0 for each of the {layers} layers, not {listed}"))?;
    Ok(numbers[..layers].iter().map(|number| *number != 0).collect())
}
