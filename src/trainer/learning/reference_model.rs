//! A reference that is another model than the policy (`actor_rollout_ref.ref.model.path`).

use anyhow::{Context, Result};

use crate::job::models::is_bfloat16;
use crate::job::second_model::SecondModel;
use crate::trainer::setup::inputs::TrainerInputs;
use burnish_config::PpoConfig;
use burnish_config::schema::Location;
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, DecoderConfig, Init};

pub(crate) const KEY: &str = "actor_rollout_ref.ref.model.path";

fn path(config: &PpoConfig) -> Option<&Location> {
    config.actor_rollout_ref.reference.model.path.as_ref().filter(|_| config.has_reference())
}

/// Returns the folder and the shape of a needed reference that is another model.
///
/// # Errors
/// If the model cannot read the sequences of the run, or has other tokens, since probabilities of different tokens cannot be
/// compared.
pub(crate) fn decoder<'a>(config: &'a PpoConfig, inputs: &TrainerInputs) -> Result<Option<(&'a Location, DecoderConfig)>> {
    let Some(path) = path(config) else { return Ok(None) };
    let decoder = HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(KEY)?;
    inputs.check_model(&decoder, config).with_context(|| format!("{KEY}={path}"))?;
    let reference = SecondModel { key: KEY, folder: path.as_path(), role: "reference", first: "policy" };
    reference.same_size(decoder.vocab_size, inputs.decoder(config)?.vocab_size)?;
    reference.tokenizer(&inputs.tokenizer)?;
    Ok(Some((path, decoder)))
}

/// Loads a needed reference that is another model; it computes in the policy's dtype.
///
/// # Errors
/// If weights cannot be read or do not fit config.json.
pub(crate) fn load(config: &PpoConfig, device: &burn::tensor::Device) -> Result<Option<CausalLm>> {
    let Some(path) = path(config) else { return Ok(None) };
    let loaded = CausalLm::load(path.as_path(), Init::Pretrained, device).context(KEY)?;
    let model = &config.actor_rollout_ref.model;
    let bfloat16 = is_bfloat16(model.dtype, config.trainer.device, device);
    Ok(Some(loaded.computing(bfloat16, model.enable_gradient_checkpointing)))
}
