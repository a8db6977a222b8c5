//! The reward functions of a configuration, ready to be asked: `reward_model`, `reward` and `custom_reward_function`.

use anyhow::{Context, Result};

use crate::config::schema::{self, REMOTE, REWARD_MODEL, RewardKeys};
use crate::data::RowNeeds;
use crate::reward::{OnError, RewardOptions, Rewards};
use crate::util::interrupt::Interrupt;

/// Starts what they need: they are refused now rather than after a model was loaded.
///
/// # Errors
/// Functions that do not exist or cannot be called, with the key that names them.
pub fn rewards(keys: &RewardKeys, _interrupt: &Interrupt) -> Result<(Rewards, RowNeeds)> {
    let (names, reward) = (keys.functions(), keys.reward);
    // A model reads the tokens alone.
    let by_model = |name: &String| name == REWARD_MODEL || name == REMOTE;
    let needs = RowNeeds {
        data_source: true,
        ground_truth: !names.iter().all(by_model),
        columns: false,
        prompt_text: names.iter().any(|name| name == REMOTE),
    };
    let options = RewardOptions {
        names,
        weights: keys.reward_weights.unwrap_or_default().to_vec(),
        settings: reward.function_kwargs.clone(),
        on_error: match reward.on_error {
            schema::OnError::Error => OnError::Error,
            schema::OnError::Abstain => OnError::Abstain,
            schema::OnError::Value => OnError::Value(reward.error_value as f32),
        },
        reports_accuracy: keys.model || keys.remote_url.is_some(),
        ..Default::default()
    };
    Ok((Rewards::new(options).context("reward_model.reward_functions")?, needs))
}
