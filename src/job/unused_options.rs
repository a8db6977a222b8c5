//! Settings that have no effect with the other settings. The start of a run names them, so that users do not wait for their
//! effect.

use anyhow::Result;

use burnish_config::schema::{OnRewardError, RewardKeys, RewardManager, Schema};
use burnish_config::{Tree, Value, defaults};
use burnish_reward::Rewards;

/// A setting that may have no effect: true if it has no effect, its key, and the reason.
pub(crate) type UnusedOption = (bool, &'static str, &'static str);

/// Condition under which settings have no effect, and the reason to print.
pub(crate) type Condition = (bool, &'static str);

/// Returns the settings of a table, each with the condition of its row.
pub fn table(rows: &[(Condition, &[&'static str])]) -> Vec<UnusedOption> {
    let options = |((unused, reason), keys): &(Condition, &[&'static str])| {
        let (unused, reason) = (*unused, *reason);
        keys.iter().map(move |key| (unused, *key, reason)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(options).collect()
}

/// Warns of the `options` that were set, to other than the default, and have no effect. Returns all options without an effect,
/// set or not.
///
/// # Errors
/// If the built-in configuration does not compose, which tests exclude.
pub(crate) fn warn_of_unused<T: Schema>(tree: &Tree, options: &[UnusedOption]) -> Result<Vec<String>> {
    let unused: Vec<(&str, &str)> = options.iter().filter(|option| option.0).map(|(_, key, why)| (*key, *why)).collect();
    warn_of::<T>(tree, &unused)
}

/// Like [`warn_of_unused`], for settings (key, reason) that all have no effect. Names each setting once, in one line per reason.
///
/// # Errors
/// The errors of [`warn_of_unused`].
pub(crate) fn warn_of<T: Schema>(tree: &Tree, unused: &[(&str, &str)]) -> Result<Vec<String>> {
    let defaults = defaults(T::DEFAULT_NAME)?;
    let references = references(&defaults);
    let keys: Vec<&str> = unused.iter().map(|(key, _)| *key).collect();
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for (i, (key, reason)) in unused.iter().enumerate() {
        let is_repeated = keys[..i].contains(key);
        if is_repeated || !is_set(tree, &defaults, key) || is_followed(tree, &references, &keys, key) {
            continue;
        }
        match lines.iter_mut().find(|(known, _)| known == reason) {
            Some((_, keys)) => keys.push(key),
            None => lines.push((reason, vec![key])),
        }
    }
    for (reason, keys) in lines {
        tracing::warn!("ignored: {}: {reason}", keys.join(", "));
    }
    let is_idle = |key: &&str| !is_followed(tree, &references, &keys, key);
    Ok(keys.iter().copied().filter(is_idle).map(str::to_owned).collect())
}

/// Returns the settings whose default is another setting: (the setting, the setting that it follows).
fn references(defaults: &Tree) -> Vec<(String, String)> {
    let follows = |key: String| {
        let Some(Value::Text(text)) = defaults.value(&key) else { return None };
        let of = text.strip_prefix("${")?.strip_suffix('}')?;
        let of = match (of.strip_prefix('.'), key.rsplit_once('.')) {
            (Some(beside), Some((group, _))) => format!("{group}.{beside}"),
            _ => of.to_owned(),
        };
        Some((key, of))
    };
    defaults.keys().into_iter().filter_map(follows).collect()
}

/// Returns true if a setting that is not in `unused` takes its value from this setting.
fn is_followed(tree: &Tree, references: &[(String, String)], unused: &[&str], key: &str) -> bool {
    let written = |key: &str| tree.value(key).map(|value| value.to_yaml());
    references
        .iter()
        .filter(|(follower, of)| of == key && written(follower) == written(key))
        .any(|(follower, _)| !unused.contains(&follower.as_str()) || is_followed(tree, references, unused, follower))
}

/// Returns true if a setting has another value than its default. The built-in files of verl's defaults do not count.
fn is_set(tree: &Tree, defaults: &Tree, key: &str) -> bool {
    // An entry added to a mapping has another origin than the mapping.
    let below = format!("{key}.");
    if tree.is_built_in(key) && tree.keys().iter().filter(|other| other.starts_with(&below)).all(|other| tree.is_built_in(other))
    {
        return false;
    }
    // Compares text, because lists remember the places of their items.
    let written = |tree: &Tree, key: &str| tree.value(key).map(|value| value.to_yaml());
    // A default that refers to another setting changes with it, and was not set.
    let follows = references(defaults).into_iter().find(|(follower, _)| follower == key);
    let default = match follows {
        None => written(defaults, key),
        Some((_, of)) => written(tree, &of),
    };
    written(tree, key) != default
}

/// Readers of the process settings, other than reward functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessKinds {
    /// Python code runs.
    pub python: bool,
    /// Tool servers run.
    pub servers: bool,
}

/// Returns the reward settings that no function reads, for a run or for responses in a file. `others`: readers other than reward
/// functions.
pub fn of_rewards(keys: &RewardKeys, rewards: &Rewards, others: ProcessKinds) -> Vec<UnusedOption> {
    let no_file = (keys.custom.path.is_none(), "custom_reward_function.path is null");
    let no_python = (no_file.0 && rewards.services().math_verify.is_none() && !others.python, "no function runs in Python");
    let no_process = (no_python.0 && !others.servers, no_python.1);
    let no_remote = (keys.remote_url.is_none(), "reward_model.remote_url is null");
    let no_call = (no_python.0 && no_remote.0, "no reward function runs outside this process");
    let no_value = (keys.reward.on_error != OnRewardError::Value, "reward.on_error is not value");
    let no_sandbox = (rewards.services().sandbox.is_none(), "no data source has programs to run");
    let prime = (no_file.0 && keys.manager == Some(RewardManager::Prime), no_file.1);
    table(&[
        (no_file, &["custom_reward_function.name", "custom_reward_function.reward_kwargs"]),
        (prime, &["reward_model.reward_manager"]),
        (no_call, &["reward.timeout"]),
        (no_process, &["reward.start_timeout", "reward.pass_env"]),
        (no_python, &["reward.python", "reward.memory_limit_mb", "reward.cpu_limit"]),
        (no_remote, &["reward.remote_retries", "reward.remote_token_env"]),
        (no_value, &["reward.error_value"]),
        (
            no_sandbox,
            &["reward.sandbox_fusion.url", "reward.sandbox_fusion.max_concurrent", "reward.sandbox_fusion.memory_limit_mb"],
        ),
    ])
}
