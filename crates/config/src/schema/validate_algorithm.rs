//! Checks of rewards, advantages and losses that the types of [`PpoConfig`] cannot express.

use super::actor::RatioAnchor;
use super::algorithm::RolloutCorrectionConfig;
use super::ppo::{ADV_ESTIMATOR, LOSS_FILE, LOSS_MODE, PpoConfig};
use super::reward::RewardManager;
use crate::Report;
use burnish_registry::Need;

const BIAS_CORRECTION: &str = "actor_rollout_ref.actor.use_bias_correction_kl";
const METRIC: &str = "algorithm.filter_groups.metric";

pub(super) fn algorithm(config: &PpoConfig, report: &mut Report) {
    intervals(config, report);
    rewards(config, report);
    losses(config, report);
    filter_groups(config, report);
    combinations(config, report);
}

/// Checks for settings that exclude each other. The refusals of an estimator or a loss are in its own file.
fn combinations(config: &PpoConfig, report: &mut Report) {
    let algorithm = &config.algorithm;
    custom_loss(config, report);
    if algorithm.echo.enable && algorithm.echo.roles.is_empty() {
        let key = "algorithm.echo.roles";
        report.wrong(key, format!("`{key}` is empty, so nothing is learnt from the environment"), format!("write {key}=[tool]"));
    }
    let (file, estimator) = ("algorithm.custom_adv_estimator.path", &algorithm.adv_estimator);
    if algorithm.custom_adv_estimator.path.is_some() && report.choices.find(ADV_ESTIMATOR, estimator).is_some() {
        let message = format!("`{file}` is set but not used, because `{ADV_ESTIMATOR}` is the built-in `{estimator}`");
        report.wrong(file, message, format!("write {ADV_ESTIMATOR}=NAME with a name in the file, or {file}=null"));
    }
    let (anchor, loss) = ("actor_rollout_ref.actor.policy_loss.anchor", &config.actor_rollout_ref.actor.policy_loss);
    let reads_anchor = report.choices.find(LOSS_MODE, &loss.loss_mode).is_some_and(|choice| choice.reads.contains(&anchor));
    let weighs = |c: &RolloutCorrectionConfig| c.rollout_is.is_some() && !c.bypass_mode;
    if loss.anchor == RatioAnchor::Rollout && reads_anchor && algorithm.rollout_correction.as_ref().is_some_and(weighs) {
        let weights = "algorithm.rollout_correction.rollout_is";
        let message = format!("with `{anchor}=rollout` the ratio corrects for generation, and `{weights}` would do it twice");
        report.wrong(anchor, message, format!("write {weights}=null, or {anchor}=old"));
    }
    if algorithm.whiten_rewards && algorithm.mask_truncated_completions {
        let whitened = "algorithm.whiten_rewards";
        let message = format!("`{whitened}` averages over trained tokens, so truncated responses (masked) would get no reward");
        report.wrong(whitened, message, "write algorithm.mask_truncated_completions=false");
    }
    if algorithm.use_kl_in_reward && algorithm.filter_groups.metric.as_deref() == Some("seq_final_reward") {
        let message = "`seq_final_reward` includes the KL term, which is not known yet when prompts are filtered";
        report.wrong(METRIC, message, format!("write {METRIC}=seq_reward"));
    }
}

/// Checks that the user's policy loss is the loss of the run.
fn custom_loss(config: &PpoConfig, report: &mut Report) {
    let loss = &config.actor_rollout_ref.actor.policy_loss;
    if loss.path.is_none() {
        return;
    }
    if report.choices.find(LOSS_MODE, &loss.loss_mode).is_some() {
        let message = format!("`{LOSS_FILE}` is set but not used, because `{LOSS_MODE}` is the built-in `{}`", loss.loss_mode);
        report.wrong(LOSS_FILE, message, format!("write {LOSS_MODE}=NAME with a name in the file, or {LOSS_FILE}=null"));
    }
    if loss.top_entropy_quantile < 1.0 {
        let key = "actor_rollout_ref.actor.policy_loss.top_entropy_quantile";
        let message = format!("`{key}` chooses tokens for a built-in loss, and `{LOSS_FILE}` brings its own");
        report.wrong(key, message, format!("write {key}=1.0, and choose the tokens in the file by its argument `entropy`"));
    }
    if loss.off_policy_mask_threshold.is_some() {
        let key = "actor_rollout_ref.actor.policy_loss.off_policy_mask_threshold";
        let message = format!("`{key}` leaves responses out of a built-in loss, and `{LOSS_FILE}` brings its own");
        report.wrong(key, message, format!("write {key}=null"));
    }
    if config.actor_rollout_ref.actor.loss_agg_mode == "prompt-mean" {
        let key = "actor_rollout_ref.actor.loss_agg_mode";
        let message = format!("`{key}=prompt-mean` needs the prompts, which `{LOSS_FILE}` does not get");
        report.wrong(key, message, format!("write {key}=token-mean"));
    }
}

fn intervals(config: &PpoConfig, report: &mut Report) {
    let algorithm = &config.algorithm;
    for (key, range) in [
        ("algorithm.reward_clip_range", algorithm.reward_clip_range),
        ("algorithm.baselined_clip_range", Some(algorithm.baselined_clip_range)),
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
            let count = keys.unwrap_or(0);
            report.wrong(
                key,
                format!("`{key}` has {} numbers, but `{of}` has {count} names", weights.len()),
                "write one for each",
            );
        }
    }
    let several = report.choices.needs(ADV_ESTIMATOR, &algorithm.adv_estimator, Need::Components);
    if several && keys.unwrap_or(0) == 0 && functions < 2 {
        report.wrong(
            "algorithm.gdpo_reward_keys",
            format!("`{}` normalises several rewards separately, but there is only one reward", algorithm.adv_estimator),
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
            let message = "the overlong buffer needs the reward manager `dapo`";
            report.wrong(&format!("{key}.enable"), message, help);
        }
    }
}

/// Checks that a loss that a switch selects is combined only with the default of `loss_mode`, and checks the terms of the loss.
fn losses(config: &PpoConfig, report: &mut Report) {
    let actor = &config.actor_rollout_ref.actor;
    if actor.use_kl_loss && actor.use_bias_correction_kl && actor.kl_loss_type.starts_with("full") {
        let message = "`full` is the divergence over the vocabulary, which no sample of an earlier policy distorts";
        report.wrong(BIAS_CORRECTION, message, format!("write {BIAS_CORRECTION}=false, or another kl_loss_type"));
    }
    if actor.use_adaptive_entropy {
        let key = "actor_rollout_ref.actor.entropy_coef_min";
        let (min, max) = (actor.entropy_coef_min, actor.entropy_coef_max);
        if min > max {
            report.wrong(key, format!("`{key}` is {min}, above entropy_coef_max ({max})"), "");
        }
        if !config.reads_advantages() {
            let key = "actor_rollout_ref.actor.use_adaptive_entropy";
            report.wrong(key, "the teacher's is the only loss, and has no entropy bonus", format!("write {key}=false"));
        }
    }
    let named = config.actor_rollout_ref.actor.policy_loss.loss_mode.as_str();
    let chosen = report.choices.for_key(LOSS_MODE).filter_map(|choice| Some((choice.name.clone(), choice.chosen_by?)));
    for (name, switch) in chosen.collect::<Vec<_>>() {
        if report.is_on(switch) && named != name && !report.is_default(LOSS_MODE) {
            report.wrong(
                LOSS_MODE,
                format!("`{switch}=true` chooses the loss `{name}`, not `{named}`"),
                "leave loss_mode at vanilla; to select the loss in it, set algorithm.rollout_correction.loss_type",
            );
        }
    }
}

fn filter_groups(config: &PpoConfig, report: &mut Report) {
    let filter = &config.algorithm.filter_groups;
    if !filter.enable {
        return;
    }
    if filter.metric.is_none() {
        let help = format!("write {METRIC}=seq_reward, or {METRIC}=acc if the scorer reports it");
        report.wrong(METRIC, format!("`algorithm.filter_groups.enable=true` needs `{METRIC}`"), help);
    }
    if config.actor_rollout_ref.rollout.n == 1 && filter.mean_range.is_none() {
        report.wrong(
            "algorithm.filter_groups.enable",
            "with a single response to each prompt, responses cannot differ, so every prompt would be dropped",
            "write actor_rollout_ref.rollout.n=2 or more, or algorithm.filter_groups.mean_range=[low,high]",
        );
    }
}
