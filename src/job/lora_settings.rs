//! From the LoRA keys of a model to its adapter and the form of the weights under it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::job::unused_options::UnusedOption;
use burnish_config::schema::LoraKeys;
use burnish_model::hf_config::HfConfig;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::nf4::FourBit;
use burnish_model::{CausalLm, DecoderConfig, LoraSettings};

/// Reads the config.json of a model, with other values and with the form of its weights.
///
/// # Errors
/// If the file cannot be read, or its weights are in 4 bits already.
pub(crate) fn read_config(keys: &LoraKeys, folder: &Path, values: impl IntoIterator<Item = (String, Value)>) -> Result<HfConfig> {
    let hf = HfConfig::read_overridden(folder, values)?;
    if keys.load_in_4bit {
        return hf.quantised(FourBit { double_quant: keys.double_quant }).with_context(|| format!("{}", folder.display()));
    }
    let is_packed = hf.json.get("quantization_config").is_some_and(|form| form["quant_method"] == "bitsandbytes");
    ensure!(
        !is_packed,
        "{}/config.json: the weights are quantised (`quantization_config`); name the model that they were made of, with \
         {}.load_in_4bit=true",
        folder.display(),
        keys.group
    );
    Ok(hf)
}

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
pub(crate) fn unused_options(keys: &LoraKeys) -> Vec<UnusedOption> {
    let why = if keys.adapter_path.is_some() { "lora_adapter_path names an adapter that has its own" } else { "lora_rank is 0" };
    let of_adapters = keys.new_adapter_keys.map(|key| (keys.rank == 0 || keys.adapter_path.is_some(), key, why));
    let of_scales = (!keys.load_in_4bit, keys.double_quant_key, "load_in_4bit is false");
    of_adapters.into_iter().chain([of_scales]).collect()
}
