//! What the types of [`PpoConfig`] cannot check about rewards, advantages and losses.

use super::{PpoConfig, RewardManager};
use crate::config::Report;

const METRIC: &str = "algorithm.filter_groups.metric";

pub fn algorithm(config: &PpoConfig, report: &mut Report) {
    intervals(config, report);
    rewards(config, report);
    losses(config, report);
    filter_groups(config, report);
    combinations(config, report);
}

/// What is done to the score, and estimators that would not see it, or see it twice.
fn combinations(config: &PpoConfig, report: &mut Report) {
    let algorithm = &config.algorithm;
    let estimator = algorithm.adv_estimator.as_str();
    let overlong = &config.reward_model.reward_kwargs.overlong_buffer_cfg;
    let shaping = [
        ("algorithm.use_kl_in_reward", algorithm.use_kl_in_reward),
        ("algorithm.missing_eos_penalty", algorithm.missing_eos_penalty.is_some()),
        ("algorithm.stop_properly_penalty_coef", algorithm.stop_properly_penalty_coef.is_some()),
        ("reward_model.reward_kwargs.overlong_buffer_cfg.enable", overlong.enable),
        ("algorithm.normalize_reward", algorithm.normalize_reward),
        ("algorithm.reward_clip_range", algorithm.reward_clip_range.is_some()),
        ("algorithm.whiten_rewards", algorithm.whiten_rewards),
    ];
    for (key, on) in shaping {
        if on && estimator.ends_with("gdpo") {
            let message = format!("`{estimator}` reads the rewards one by one, and `{key}` is about their sum");
            report.wrong(key, message, "leave it out, or choose another algorithm.adv_estimator");
        }
    }
    let apart = ["reinforce", "reinforce_baseline", "group_norm", "dr_grpo", "openrlhf_rloo"].contains(&estimator);
    let whitened = "algorithm.whiten_rewards";
    if algorithm.whiten_rewards && apart {
        let message = format!("`{estimator}` reads scores and KL terms apart, and `{whitened}` is about their sum");
        report.wrong(whitened, message, "leave it out, or choose another algorithm.adv_estimator");
    }
    if algorithm.whiten_rewards && algorithm.mask_truncated_completions {
        let message = format!("`{whitened}` is over trained tokens, and leaves no reward to responses that are left out");
        report.wrong(whitened, message, "leave out algorithm.mask_truncated_completions");
    }
    for (key, on) in [(whitened, algorithm.whiten_rewards), ("algorithm.normalize_reward", algorithm.normalize_reward)] {
        if on && estimator == "remax" {
            let message = format!("`remax` compares scores with those of greedy responses, which `{key}` does not see");
            report.wrong(key, message, "leave it out, or choose another algorithm.adv_estimator");
        }
    }
    let correction = algorithm.rollout_correction.as_ref();
    let by_sequence = correction.is_some_and(|c| c.rollout_is.as_deref() == Some("sequence"));
    if by_sequence && config.actor_rollout_ref.actor.policy_loss.loss_mode == "vespo" {
        report.wrong(
            "algorithm.rollout_correction.rollout_is",
            "`vespo` multiplies the weights of a response's tokens, so they must be per token",
            "write algorithm.rollout_correction.rollout_is=token",
        );
    }
    if algorithm.use_kl_in_reward && algorithm.filter_groups.metric.as_deref() == Some("seq_final_reward") {
        let message = "prompts are filtered before the KL term is known, which `seq_final_reward` includes";
        report.wrong(METRIC, message, format!("write {METRIC}=seq_reward"));
    }
}

fn intervals(config: &PpoConfig, report: &mut Report) {
    let algorithm = &config.algorithm;
    for (key, range) in [
        ("algorithm.reward_clip_range", algorithm.reward_clip_range),
        ("algorithm.filter_groups.mean_range", algorithm.filter_groups.mean_range),
    ] {
        if let Some([low, high]) = range.filter(|[low, high]| low.partial_cmp(high) != Some(std::cmp::Ordering::Less)) {
            report.wrong(key, format!("`{key}` must be [low, high] with low below high, not [{low}, {high}]"), "");
        }
    }
}

fn rewards(config: &PpoConfig, report: &mut Report) {
    let (rewards, algorithm) = (&config.reward_model, &config.algorithm);
    let functions = config.rewards().functions().len();
    let keys = algorithm.gdpo_reward_keys.as_ref().map(Vec::len);
    if let Some(weights) = &algorithm.gdpo_reward_weights {
        let (key, of) = ("algorithm.gdpo_reward_weights", "algorithm.gdpo_reward_keys");
        if keys != Some(weights.len()) {
            let count = keys.map_or("none".to_owned(), |count| count.to_string());
            report.wrong(key, format!("`{key}` has {} numbers, `{of}` has {count} names", weights.len()), "write one for each");
        }
    }
    if algorithm.adv_estimator.ends_with("gdpo") && keys.unwrap_or(0) == 0 && functions < 2 {
        report.wrong(
            "algorithm.gdpo_reward_keys",
            format!("`{}` normalises several rewards one by one, and there is one", algorithm.adv_estimator),
            "name them by algorithm.gdpo_reward_keys=[…], or set several reward_model.reward_functions",
        );
    }
    let overlong = &rewards.reward_kwargs.overlong_buffer_cfg;
    if overlong.enable {
        let key = "reward_model.reward_kwargs.overlong_buffer_cfg";
        let longest = rewards.reward_kwargs.max_resp_len;
        if overlong.len == 0 || overlong.len > longest {
            let len = format!("{key}.len");
            report.wrong(&len, format!("`{len}` must be from 1 to max_resp_len ({longest}), not {}", overlong.len), "");
        }
        if rewards.reward_manager != Some(RewardManager::Dapo) {
            let help = "write reward_model.reward_manager=dapo";
            let message = "only the reward manager `dapo` has an overlong buffer";
            report.wrong(&format!("{key}.enable"), message, help);
        }
    }
}

fn losses(config: &PpoConfig, report: &mut Report) {
    let loss = &config.actor_rollout_ref.actor.policy_loss;
    if loss.loss_mode == "dro" && loss.dro_beta.is_none() {
        let key = "actor_rollout_ref.actor.policy_loss.dro_beta";
        report.wrong(key, format!("the loss `dro` needs `{key}`"), format!("write {key}=1.0, or another number above 0"));
    }
    let bypass = config.algorithm.rollout_correction.as_ref().is_some_and(|correction| correction.bypass_mode);
    let key = "actor_rollout_ref.actor.policy_loss.loss_mode";
    if loss.loss_mode == "bypass_mode" && !bypass {
        let help = "write algorithm.rollout_correction.bypass_mode=true, which chooses this loss";
        report.wrong(key, "the loss `bypass_mode` needs rollout correction in bypass mode", help);
    }
    if bypass && !["vanilla", "bypass_mode"].contains(&loss.loss_mode.as_str()) {
        report.wrong(
            key,
            format!("`algorithm.rollout_correction.bypass_mode=true` chooses the loss `bypass_mode`, not `{}`", loss.loss_mode),
            "leave loss_mode at vanilla; algorithm.rollout_correction.loss_type names the loss below it",
        );
    }
}

fn filter_groups(config: &PpoConfig, report: &mut Report) {
    let filter = &config.algorithm.filter_groups;
    if !filter.enable {
        return;
    }
    if filter.metric.is_none() {
        let help = format!("write {METRIC}=seq_reward, or acc where the scorer reports it");
        report.wrong(METRIC, format!("`algorithm.filter_groups.enable=true` needs `{METRIC}`"), help);
    }
    if config.actor_rollout_ref.rollout.n == 1 && filter.mean_range.is_none() {
        report.wrong(
            "algorithm.filter_groups.enable",
            "with one response to each prompt none differ, so nothing is filtered",
            "write actor_rollout_ref.rollout.n=2 or more, or algorithm.filter_groups.mean_range=[low,high]",
        );
    }
}
