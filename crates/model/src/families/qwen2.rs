//! Qwen2 and Qwen2.5 (`Qwen2ForCausalLM`): the Llama decoder with biases on the q, k and v projections.

use anyhow::Result;

use super::Family;
use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;

pub(super) const FAMILY: Family = Family {
    model_type: "qwen2",
    class: "Qwen2",
    doc: "Qwen2 and Qwen2.5: the Llama decoder with biases on q, k and v",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        Ok(DecoderConfig { qkv_bias: true, windows: windows(config, common.num_hidden_layers)?, ..common })
    },
};

/// Windows of each layer: with `use_sliding_window`, layers from `max_window_layers` on have a window.
pub(super) fn windows(config: &HfReader, layers: usize) -> Result<Vec<Option<usize>>> {
    let first = config.usize_or("max_window_layers", 28)?;
    if config.bool_or("use_sliding_window", false)? {
        return config.windows(layers, |layer| layer >= first);
    }
    config.unused(&["sliding_window", "layer_types"]);
    Ok(vec![None; layers])
}
