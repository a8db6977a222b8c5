//! Reads the policy's config.json and tokenizer.

use anyhow::{Context, Result, ensure};

use crate::job::lora_settings;
use crate::job::second_model::note_other_tokenizer;
use crate::job::template_date::dated;
use burnish_config::PpoConfig;
use burnish_config::schema::{Location, ModelConfig, ModelInit};
use burnish_data::Tokenizer;
use burnish_model::hf_config::HfConfig;

/// Reads the policy's config.json, with `override_config`.
pub fn hf_config(model: &ModelConfig) -> Result<HfConfig> {
    lora_settings::read_config(&model.lora(), model.path.as_path(), model.override_config.clone())
}

/// Returns the folder of the tokenizer: `data.tokenizer`, else the model's.
pub(super) fn tokenizer_folder(config: &PpoConfig) -> &Location {
    config.data.tokenizer.as_ref().unwrap_or(&config.actor_rollout_ref.model.path)
}

/// Reads the tokenizer, with the end tokens of the model and the date of the chat template.
///
/// # Errors
/// If a file cannot be read, or `rollout.stop_token_ids` has ids beyond the vocabulary.
pub(crate) fn read_tokenizer(config: &PpoConfig) -> Result<Tokenizer> {
    let model = &config.actor_rollout_ref.model;
    let tokenizer = Tokenizer::load(tokenizer_folder(config).as_path()).with_context(|| match &config.data.tokenizer {
        Some(_) => "data.tokenizer".to_owned(),
        None => "actor_rollout_ref.model.path (data.tokenizer can name another folder for the tokenizer)".to_owned(),
    })?;
    let tokenizer = tokenizer.with_ends_of(model.path.as_path()).context("actor_rollout_ref.model.path")?;
    if config.data.tokenizer.is_some() && model.init == ModelInit::Pretrained {
        note_other_tokenizer("data.tokenizer", &tokenizer, model.path.as_path())?;
    }
    let tokenizer = dated(tokenizer, config.data.chat_template_date.as_deref(), Some(&config.trainer.resume()))?;
    for id in &config.actor_rollout_ref.rollout.stop_token_ids {
        let known = tokenizer.vocab_size();
        ensure!(
            (*id as usize) < known,
            "actor_rollout_ref.rollout.stop_token_ids has {id}; ids of the tokenizer are below {known}"
        );
    }
    Ok(tokenizer)
}
