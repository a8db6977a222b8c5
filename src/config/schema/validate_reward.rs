//! What the types cannot check about rewards.

use super::validate::{Bound, COUNT, FINITE, check};
use super::{PpoConfig, REMOTE, REWARD_MODEL, RewardKeys, RewardManager};
use crate::config::Report;

/// What clocks can count, and more than any run takes.
const SECONDS: Bound = (|x| x > 0.0 && x <= 1e8, "above 0, and at most 1e8");
/// Each is a thread, and of Python a process.
const WORKERS: Bound = (|x| (1.0..=4096.0).contains(&x), "from 1 to 4096");
const LIST: &str = "reward_model.reward_functions";

/// What makes up a score: whatever the settings bring is one of the reward functions, and the other way round.
pub fn keys(keys: &RewardKeys, report: &mut Report) {
    let (names, reward) = (keys.functions(), keys.reward);
    if names.is_empty() {
        report.wrong(LIST, format!("`{LIST}` is empty, so nothing has a score"), format!("write {LIST}=[data_source]"));
    }
    let own = if keys.custom.path.is_some() { keys.custom.name.to_vec() } else { Vec::new() };
    let model = match keys.model {
        Some(_) => "reward_model.enable=true",
        None => "reward_model.remote_url=URL and `remote`, for a model that trainer serve-rm serves",
    };
    let parts = [
        (!own.is_empty(), "custom_reward_function.path", own.as_slice(), "custom_reward_function.path=FILE"),
        (keys.model == Some(true), "reward_model.enable", &[REWARD_MODEL.to_owned()], model),
        (keys.remote_url.is_some(), "reward_model.remote_url", &[REMOTE.to_owned()], "reward_model.remote_url=URL"),
    ];
    let brought = parts.iter().filter(|(there, ..)| *there).count();
    if keys.reward_functions.is_none() && brought > 1 {
        let set: Vec<&str> = parts.iter().filter(|(there, ..)| *there).map(|(_, key, ..)| *key).collect();
        let message = format!("`{}` are set: which of them make the score?", set.join("` and `"));
        report.wrong(LIST, message, format!("write {LIST}=[{}]: the score is their weighted sum", keys.chosen().join(",")));
    }
    for (there, key, brings, setting) in parts {
        let missing = brings.iter().find(|name| !names.contains(name)).filter(|_| there && !names.is_empty());
        if let Some(missing) = missing {
            let message = format!("`{key}` is set, but `{LIST}` does not name `{missing}`, so it would not count");
            let help = format!("write {LIST}=[{},{missing}], or {LIST}=null: it alone", names.join(","));
            report.wrong(LIST, message, help);
        } else if !there && names.iter().any(|name| brings.contains(name)) {
            report.wrong(LIST, format!("`{LIST}` names `{}`, but `{key}` is not set", brings[0]), format!("write {setting}"));
        }
    }
    if keys.manager == Some(RewardManager::Batch) && own.is_empty() {
        let message = "the reward manager `batch` calls `custom_reward_function`, which has no path";
        report.wrong("reward_model.reward_manager", message, "write custom_reward_function.path=FILE");
    }
    let (weights, of) = ("reward_model.reward_weights", keys.reward_weights.unwrap_or_default());
    if keys.reward_weights.is_some() && of.len() != names.len() {
        let message = format!("`{weights}` has {} numbers, `{LIST}` has {} names", of.len(), names.len());
        report.wrong(weights, message, "write one for each");
    }
    if of.iter().any(|weight| !weight.is_finite()) {
        report.wrong(weights, format!("`{weights}` must be finite numbers"), "");
    }
    let mut rows: Vec<(&str, f64, Bound)> = vec![
        ("reward.num_workers", reward.num_workers as f64, WORKERS),
        ("reward.timeout", reward.timeout, SECONDS),
        ("reward.start_timeout", reward.start_timeout, SECONDS),
        ("reward.error_value", f64::from(reward.error_value as f32), FINITE),
        ("reward.remote_retries", reward.remote_retries as f64, COUNT),
        ("reward.sandbox_fusion.max_concurrent", reward.sandbox_fusion.max_concurrent as f64, COUNT),
        ("reward.sandbox_fusion.memory_limit_mb", reward.sandbox_fusion.memory_limit_mb as f64, COUNT),
    ];
    let limits = [("reward.memory_limit_mb", reward.memory_limit_mb), ("reward.cpu_limit", reward.cpu_limit)];
    rows.extend(limits.into_iter().filter_map(|(key, limit)| Some((key, limit? as f64, COUNT))));
    check(rows, report);
}

/// The model that scores.
pub fn reward_model(config: &PpoConfig, report: &mut Report) {
    let settings = &config.reward_model;
    if settings.enable && settings.model.path.is_none() {
        let key = "reward_model.model.path";
        report.wrong(key, format!("`reward_model.enable=true` needs `{key}`"), format!("write {key}=FOLDER"));
    }
    let max_length = settings.max_length.map(|length| ("reward_model.max_length", length as f64, COUNT));
    let sizes = [
        ("reward_model.micro_batch_size_per_gpu", settings.micro_batch_size_per_gpu as f64, COUNT),
        ("reward_model.forward_max_token_len_per_gpu", settings.forward_max_token_len_per_gpu as f64, COUNT),
    ];
    check(sizes.into_iter().chain(max_length).collect(), report);
}
