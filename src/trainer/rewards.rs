//! The reward functions of a configuration, ready to be asked: `reward_model`, `reward` and `custom_reward_function`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::config::schema::{self, REMOTE, REWARD_MODEL, RewardConfig, RewardKeys, RewardManager};
use crate::data::RowNeeds;
use crate::reward::python::{self, Pool, PoolOptions, Source, Style};
use crate::reward::{OnError, RewardOptions, Rewards};
use crate::util::interrupt::Interrupt;

/// Starts what they need: they are refused now rather than after a model was loaded.
///
/// # Errors
/// Functions that do not exist or cannot be called, with the key that names them.
pub fn rewards(keys: &RewardKeys, interrupt: &Interrupt) -> Result<(Rewards, RowNeeds)> {
    let (names, reward) = (keys.functions(), keys.reward);
    let pool = custom(keys, interrupt)?;
    let needs = needs(&names, pool.as_deref());
    let options = RewardOptions {
        names,
        weights: keys.reward_weights.unwrap_or_default().to_vec(),
        settings: reward.function_kwargs.clone(),
        own: pool.iter().flat_map(python::functions).collect(),
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

/// The processes of `custom_reward_function`.
fn custom(keys: &RewardKeys, interrupt: &Interrupt) -> Result<Option<Arc<Pool>>> {
    let custom = keys.custom;
    let Some(path) = &custom.path else { return Ok(None) };
    let source = Source::File {
        path: path.to_string(),
        names: custom.name.to_vec(),
        reward_kwargs: custom.reward_kwargs.clone().into_iter().collect(),
        positional: keys.manager == Some(RewardManager::Prime),
    };
    let pool = Pool::start(source, pool_options(keys.reward, interrupt)).context("custom_reward_function")?;
    for function in pool.functions() {
        let (name, batch) = (&function.name, function.style == Style::VerlBatch);
        ensure!(
            batch || keys.manager != Some(RewardManager::Batch),
            "reward_model.reward_manager=batch calls a function with lists (data_sources, solution_strs, ground_truths, extra_infos), \
             which {name} in {path} does not take; reward_manager=naive calls it for each response"
        );
    }
    Ok(Some(Arc::new(pool)))
}

/// What processes of Python may use.
fn pool_options(reward: &RewardConfig, interrupt: &Interrupt) -> PoolOptions {
    PoolOptions {
        python: reward.python.to_string(),
        num_workers: reward.num_workers,
        timeout: Duration::from_secs_f64(reward.timeout),
        start_timeout: Duration::from_secs_f64(reward.start_timeout),
        memory_limit_mb: reward.memory_limit_mb,
        cpu_limit: reward.cpu_limit,
        pass_env: reward.pass_env.clone(),
        interrupt: interrupt.clone(),
    }
}

/// What these functions read of a row. Those of TRL and OpenRLHF know neither verl's columns nor its data sources.
fn needs(names: &[String], pool: Option<&Pool>) -> RowNeeds {
    let styles: Vec<Option<Style>> = names
        .iter()
        .map(|name| pool.and_then(|pool| pool.functions().iter().find(|function| function.name == *name)).map(|f| f.style))
        .collect();
    let foreign = |style: &Option<Style>| matches!(style, Some(Style::Trl | Style::OpenRlhf));
    // A model reads the tokens alone.
    let by_model = |name: &String| name == REWARD_MODEL || name == REMOTE;
    RowNeeds {
        data_source: !styles.iter().all(foreign),
        ground_truth: names.iter().zip(&styles).any(|(name, style)| !by_model(name) && !foreign(style)),
        columns: styles.contains(&Some(Style::Trl)),
        prompt_text: styles.contains(&Some(Style::OpenRlhf)) || names.iter().any(|name| name == REMOTE),
    }
}
