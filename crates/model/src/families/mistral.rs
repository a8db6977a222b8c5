//! Mistral (`MistralForCausalLM`): the Llama decoder; if a sliding window is set, it applies to every layer.

use super::Family;
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "mistral",
    class: "Mistral",
    doc: "Mistral: the Llama decoder, with a sliding window of attention where `sliding_window` is set",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let windows = config.windows(common.num_hidden_layers, |_| true)?;
        Ok(DecoderConfig { windows, ..common })
    },
};
