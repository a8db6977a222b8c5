//! What the types of [`PpoConfig`] cannot check about the reward model.

use super::validate::{COUNT, check};
use super::{PpoConfig, REWARD_MODEL};
use crate::config::Report;

/// There is a reward model where, and only where, it is one of the reward functions.
pub fn reward_model(config: &PpoConfig, report: &mut Report) {
    let settings = &config.reward_model;
    let (list, names) = ("reward_model.reward_functions", settings.functions());
    match (settings.enable, names.iter().any(|name| name == REWARD_MODEL)) {
        (true, false) if !names.is_empty() => {
            let message =
                format!("`reward_model.enable=true`, but `{list}` does not name `{REWARD_MODEL}`, so its score would not count");
            let help = format!("write {list}=[{},{REWARD_MODEL}], or {list}=null: the reward model alone", names.join(","));
            report.wrong(list, message, help);
        }
        (false, true) => {
            let message = format!("`{list}` names `{REWARD_MODEL}`, but `reward_model.enable` is false");
            report.wrong(list, message, "write reward_model.enable=true, and its folder as reward_model.model.path");
        }
        _ => {}
    }
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
