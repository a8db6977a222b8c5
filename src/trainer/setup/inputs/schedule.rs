//! The length of a run: the order of its prompts, its epochs, and its steps.

use anyhow::{Context, Error, Result, ensure};

use super::prompts::Prompts;
use burnish_config::PpoConfig;
use burnish_config::plan::MAX_TOKENS;
use burnish_data::Sampler;
use burnish_util::sizes::product;

/// The order of the training prompts, and the number of steps.
pub(super) struct PromptSchedule {
    pub sampler: Sampler,
    pub steps_per_epoch: u64,
    pub total_steps: u64,
}

impl PromptSchedule {
    /// Returns the schedule of a run.
    ///
    /// # Errors
    /// If a validation has too many tokens, or an epoch has no step.
    pub(super) fn new(config: &PpoConfig, Prompts { train, val }: &Prompts) -> Result<Self> {
        let (data, trainer) = (&config.data, &config.trainer);
        if config.validates() {
            let validation = [
                ("`data.val_files` rows", val.len()),
                ("`actor_rollout_ref.rollout.val_kwargs.n`", config.actor_rollout_ref.rollout.val_kwargs.n),
                ("`data.max_response_length`", data.max_response_length),
            ];
            product(&validation, "tokens of a validation", 4, MAX_TOKENS).map_err(Error::msg)?;
        }
        let seed = data.seed.unwrap_or(trainer.seed);
        let is_filtered = config.algorithm.filter_groups.enable;
        let (size, key) = match data.gen_batch_size.filter(|_| is_filtered) {
            Some(size) => (size, "data.gen_batch_size"),
            None if is_filtered => (data.train_batch_size, "data.gen_batch_size=null, which is data.train_batch_size"),
            None => (data.train_batch_size, "data.train_batch_size"),
        };
        let sampler = Sampler::new(train.len(), size, data.shuffle, seed, true).context(key)?;
        let steps_per_epoch = (train.len() / data.train_batch_size) as u64;
        let total_steps = match trainer.total_training_steps {
            Some(steps) => steps as u64,
            None => steps_per_epoch.saturating_mul(trainer.total_epochs as u64),
        };
        ensure!(
            total_steps > 0,
            "data.train_batch_size={}: {} rows are fewer than one step takes, so an epoch has no step; set \
             trainer.total_training_steps to go through them repeatedly",
            data.train_batch_size,
            train.len()
        );
        Ok(Self { sampler, steps_per_epoch, total_steps })
    }
}
