//! Checks of rewards that the types cannot express.

use super::ppo::PpoConfig;
use super::reward::{REMOTE, REWARD_MODEL, RewardKeys, RewardManager};
use crate::Report;

const LIST: &str = "reward_model.reward_functions";

/// Checks the settings that make up a score: every configured reward is in the list of reward functions, and vice versa.
pub(super) fn keys(keys: &RewardKeys, report: &mut Report) {
    let (names, reward) = (keys.functions(), keys.reward);
    if names.is_empty() {
        report.wrong(LIST, format!("`{LIST}` is empty, so responses would have no score"), format!("write {LIST}=[data_source]"));
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
        let message = format!("`{}` are all set, but `{LIST}` does not say which of them make the score", set.join("` and `"));
        report.wrong(LIST, message, format!("write {LIST}=[{}]: the score is their weighted sum", keys.chosen().join(",")));
    }
    for (there, key, brings, setting) in parts {
        let missing = brings.iter().find(|name| !names.contains(name)).filter(|_| there && !names.is_empty());
        if let Some(missing) = missing {
            let message = format!("`{key}` is set, but `{LIST}` does not name `{missing}`, so it would not count");
            let help = format!("write {LIST}=[{},{missing}], or {LIST}=null to use only {missing}", names.join(","));
            report.wrong(LIST, message, help);
        } else if !there && names.iter().any(|name| brings.contains(name)) {
            report.wrong(LIST, format!("`{LIST}` names `{}`, but `{key}` is not set", brings[0]), format!("write {setting}"));
        }
    }
    if keys.manager == Some(RewardManager::Batch) && own.is_empty() {
        let message = "the reward manager `batch` calls `custom_reward_function`, but its path is not set";
        report.wrong("reward_model.reward_manager", message, "write custom_reward_function.path=FILE");
    }
    let (weights, of) = ("reward_model.reward_weights", keys.reward_weights.unwrap_or_default());
    if keys.reward_weights.is_some() && of.len() != names.len() {
        let message = format!("`{weights}` has {} numbers, but `{LIST}` has {} names", of.len(), names.len());
        report.wrong(weights, message, "write one for each");
    }
    // Rewards are f32.
    if !(reward.error_value as f32).is_finite() {
        report.wrong(
            "reward.error_value",
            format!("`reward.error_value` must be a finite number, not {}", reward.error_value),
            "",
        );
    }
}

/// Checks the settings of the reward model.
pub(super) fn reward_model(config: &PpoConfig, report: &mut Report) {
    let settings = &config.reward_model;
    if settings.enable && settings.model.path.is_none() {
        let key = "reward_model.model.path";
        report.wrong(key, format!("`reward_model.enable=true` needs `{key}`"), format!("write {key}=FOLDER"));
    }
    let tokens = settings.reward_tokens.as_ref().map_or(0, |tokens| tokens.0.len());
    if settings.placeholder_token.is_some() && tokens < 2 {
        let key = "reward_model.reward_tokens";
        let message = format!("`reward_model.placeholder_token` needs two or more tokens in `{key}`, the better one first");
        report.wrong(key, message, format!("write {key}=['+','-']"));
    }
    if settings.enable && settings.step_separator.is_empty() {
        let key = "reward_model.step_separator";
        report.wrong(key, format!("`{key}` is empty"), format!("write {key}='\"\\n\"'"));
    }
}
