//! From the LoRA keys of a model to its adapter.

use std::path::Path;

use anyhow::Result;

use crate::job::unused_options::UnusedOption;
use burnish_config::schema::LoraKeys;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::{CausalLm, DecoderConfig, LoraSettings};

/// Returns the adapter that a run starts with; `None` without LoRA. `base`: the model's folder.
pub fn adapter(keys: &LoraKeys, config: &DecoderConfig, base: &Path, seed: u64) -> Result<Option<PeftAdapter>> {
    let settings = LoraSettings {
        rank: keys.rank,
        alpha: keys.alpha,
        target_modules: keys.target_modules.to_vec(),
        exclude_modules: keys.exclude_modules.map_or_else(Vec::new, |names| names.to_vec()),
        adapter_path: keys.adapter_path.map(|path| path.as_path().to_owned()),
        group: keys.group,
    };
    settings.start(config, base, seed)
}

/// Returns the model with that adapter.
pub fn adapt(model: CausalLm, keys: &LoraKeys, base: &Path, seed: u64) -> Result<CausalLm> {
    match adapter(keys, &model.config, base, seed)? {
        Some(adapter) => model.adapted(&adapter),
        None => Ok(model),
    }
}

/// Returns the keys without an effect.
pub(crate) fn unused_options(keys: &LoraKeys) -> [UnusedOption; 3] {
    let why = if keys.adapter_path.is_some() { "lora_adapter_path names an adapter that has its own" } else { "lora_rank is 0" };
    keys.new_adapter_keys.map(|key| (keys.rank == 0 || keys.adapter_path.is_some(), key, why))
}
