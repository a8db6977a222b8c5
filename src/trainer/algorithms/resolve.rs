//! From settings to the options of the algorithms.

use crate::job::words::ToLayer;
use anyhow::{Context, Result, bail};
use figment::value::{Num, Value};

use burnish_algorithm::advantage::{self, Need};
use burnish_algorithm::entropy_bonus::{AdaptiveEntropy, EntropyTarget};
use burnish_algorithm::kl::{self, KlRatio};
use burnish_algorithm::loss::PolicyObjective;
use burnish_algorithm::options::{OptionValue, Options};
use burnish_algorithm::pf_ppo::{self, Reweighting};
use burnish_algorithm::policy_loss::{self, ANCHOR, LossOptions, PolicyLoss};
use burnish_algorithm::reward_shaping::{LengthPenalty, NormalizeAdvantages, OverlongBuffer, RewardShaping};
use burnish_algorithm::rollout_correction::{BypassLoss, CorrectionSettings, RolloutCorrection};
use burnish_config::BatchPlan;
use burnish_config::schema::{self, PpoConfig, RatioAnchor, RewardManager};
use burnish_util::json_number;

/// Correction of the difference between generation and training.
pub(crate) struct Correction {
    /// `None` without a correction.
    pub correction: Option<RolloutCorrection>,
    pub bypass: bool,
}

/// # Errors
/// A setting of `algorithm.rollout_correction` that makes no sense.
pub(crate) fn corrections(config: &PpoConfig) -> Result<Correction> {
    let Some(settings) = &config.algorithm.rollout_correction else { return Ok(Correction { correction: None, bypass: false }) };
    let correction = RolloutCorrection::new(&CorrectionSettings {
        rollout_is: settings.rollout_is.clone().filter(|_| config.reads_importance_weights()),
        rollout_is_threshold: settings.rollout_is_threshold.as_ref().map(ToString::to_string),
        rollout_is_threshold_lower: settings.rollout_is_threshold_lower,
        rollout_is_batch_normalize: settings.rollout_is_batch_normalize,
        rollout_rs: settings.rollout_rs.clone(),
        rollout_rs_threshold: settings.rollout_rs_threshold.as_ref().map(ToString::to_string),
        rollout_rs_threshold_lower: settings.rollout_rs_threshold_lower,
        rollout_token_veto_threshold: settings.rollout_token_veto_threshold,
        count_rejected: settings.count_rejected && config.reads_importance_weights(),
    })?;
    let corrects = settings.bypass_mode || correction.corrects();
    Ok(Correction { correction: corrects.then_some(correction), bypass: settings.bypass_mode })
}

/// Returns true if an estimator or a metric reads Σ π² of each token.
pub(crate) fn reads_sum_pi_squared(config: &PpoConfig) -> bool {
    let estimator = advantage::find(&config.algorithm.adv_estimator);
    let read = estimator.is_some_and(|e| e.needs(Need::SumPiSquared)) || config.actor_rollout_ref.actor.calculate_sum_pi_squared;
    read && config.reads_advantages()
}

/// Returns true if the old policy's log-probs need a separate pass. With a single update per step the old policy is the updated
/// one, and every ratio is exactly 1. A KL term in the rewards, or a teacher's in the advantages, can then use the log-probs that
/// generation reports. That requires equal temperatures and float32: greedy responses are reported at 1, the user's loops may
/// sample a turn at another temperature, and in bfloat16 the two differ too much. In bypass mode, and in losses whose ratio is to
/// the policy that generated, that policy replaces the old one.
pub(crate) fn needs_old_log_probs(config: &PpoConfig, plan: &BatchPlan, corrections: &Correction) -> bool {
    let rollout = &config.actor_rollout_ref.rollout;
    let exact = !config.actor_rollout_ref.model.dtype.is_bfloat16(config.trainer.device);
    let one_temperature = rollout.agent.agent_loop_config_path.is_none();
    let reported = exact && one_temperature && (rollout.do_sample || rollout.temperature == 1.0);
    let compared = config.has_kl_in_reward() || config.distillation.in_advantages().is_some();
    let read = !plan.on_policy() && !is_to_rollout(config) || compared && !reported || corrections.correction.is_some();
    read && !corrections.bypass || reads_sum_pi_squared(config) || rollout.calculate_log_probs
}

/// Returns true if the policy loss takes its ratio to the policy that generated, without bypass mode.
pub(crate) fn is_to_rollout(config: &PpoConfig) -> bool {
    let anchored = config.actor_rollout_ref.actor.policy_loss.anchor == RatioAnchor::Rollout;
    let is_to_rollout = |loss: &PolicyLoss| loss.needs.contains(&Need::Rollout) || loss.reads.contains(&ANCHOR) && anchored;
    policy_loss(config).is_ok_and(is_to_rollout)
}

/// Returns the objective that the actor minimises.
///
/// # Errors
/// If no registry has a name.
pub(crate) fn objective(config: &PpoConfig, bypass: bool, correction: Option<RolloutCorrection>) -> Result<PolicyObjective> {
    let actor = &config.actor_rollout_ref.actor;
    let loss = &actor.policy_loss;
    let policy_loss = policy_loss(config)?;
    // The loss with one ratio per response corrects the KL term by the same ratio, as in TRL.
    let ratio = if policy_loss.name == "gspo" { KlRatio::Response } else { KlRatio::Token };
    let kl_penalty = || {
        let penalty = kl::find(&actor.kl_loss_type).context("unknown kl_loss_type")?;
        anyhow::Ok(if actor.use_bias_correction_kl { penalty.corrected(ratio) } else { penalty })
    };
    let settings = config.algorithm.rollout_correction.as_ref();
    Ok(PolicyObjective {
        policy_loss,
        options: LossOptions {
            settings: options(config, policy_loss.reads)?,
            rollout_correction: correction.filter(|_| bypass),
            bypass_loss: settings.map_or(BypassLoss::PpoClip, |settings| settings.loss_type.to_layer()),
        },
        entropy_coeff: if actor.use_adaptive_entropy { 0.0 } else { actor.entropy_coeff },
        kl_loss: if actor.use_kl_loss { Some((kl_penalty()?, actor.kl_loss_coef)) } else { None },
        off_policy_mask: loss.off_policy_mask_threshold.filter(|_| config.reads_advantages()),
        top_entropy_quantile: if config.reads_advantages() { loss.top_entropy_quantile } else { 1.0 },
    })
}

/// Returns the shaping of each single score; empty if scores have no reader.
pub(crate) fn shaping(config: &PpoConfig) -> RewardShaping {
    if !config.reads_scores() {
        return RewardShaping::default();
    }
    let (rewards, algorithm) = (&config.reward_model, &config.algorithm);
    let buffer = &rewards.reward_kwargs.overlong_buffer_cfg;
    RewardShaping {
        overlong: (rewards.reward_manager == Some(RewardManager::Dapo) && buffer.enable).then_some(OverlongBuffer {
            len: buffer.len,
            max_resp_len: rewards.reward_kwargs.max_resp_len,
            penalty_factor: buffer.penalty_factor,
            log: buffer.log,
        }),
        stop_properly: algorithm.stop_properly_penalty_coef,
        missing_eos_penalty: algorithm.missing_eos_penalty,
        ..RewardShaping::default()
    }
}

/// Returns the shaping of the scores of a batch, after the shaping of each single score.
pub(crate) fn batch_shaping(config: &PpoConfig) -> RewardShaping {
    let algorithm = &config.algorithm;
    RewardShaping { normalize: algorithm.normalize_reward, clip: algorithm.reward_clip_range, ..RewardShaping::default() }
}

/// Returns the penalty for the length of responses, if a weight is not 0.
pub(crate) fn length_penalty(config: &PpoConfig) -> Option<LengthPenalty> {
    let schema::LengthPenaltyConfig { num_output_tokens_weight, num_input_tokens_weight, num_turns_weight } =
        config.algorithm.length_penalty;
    let weights = [num_output_tokens_weight, num_input_tokens_weight, num_turns_weight].map(|weight| weight.unwrap_or(0.0));
    let [output_tokens, input_tokens, turns] = weights;
    (weights != [0.0; 3]).then_some(LengthPenalty { output_tokens, input_tokens, turns })
}

/// Returns the entropy bonus whose weight follows the entropy, if the run has one.
pub(crate) fn adaptive_entropy(config: &PpoConfig) -> Option<(AdaptiveEntropy, EntropyTarget)> {
    let actor = &config.actor_rollout_ref.actor;
    actor.use_adaptive_entropy.then(|| {
        let (target, delta) = (actor.entropy_target, actor.entropy_coef_delta);
        let settings = EntropyTarget { target, delta, min: actor.entropy_coef_min, max: actor.entropy_coef_max };
        (AdaptiveEntropy::new(actor.entropy_coeff), settings)
    })
}

/// Returns the policy loss of a run, which has no formula if a file brings it; the default if a teacher's loss replaces it.
///
/// # Errors
/// If no registry has the name.
pub(crate) fn policy_loss(config: &PpoConfig) -> Result<&'static PolicyLoss> {
    if !config.reads_advantages() {
        return policy_loss::find("vanilla").context("no policy loss vanilla");
    }
    if config.actor_rollout_ref.actor.policy_loss.path.is_some() {
        return Ok(&policy_loss::CUSTOM);
    }
    let settings = Value::serialize(config)?;
    let is_on = |switch: &str| matches!(setting(&settings, switch), Ok(OptionValue::Bool(true)));
    policy_loss::chosen(&config.actor_rollout_ref.actor.policy_loss.loss_mode, is_on).context("unknown loss_mode")
}

/// Returns the settings of these keys, as an algorithm reads them.
///
/// # Errors
/// If a key is not a setting, or is neither a switch nor a number nor a word.
pub fn options(config: &PpoConfig, keys: &[&'static str]) -> Result<Options> {
    let settings = Value::serialize(config)?;
    Options::read(keys, |key| setting(&settings, key))
}

/// Returns the section of the actor as JSON, with words for floats that JSON lacks.
///
/// # Errors
/// If the section cannot be written.
pub(crate) fn actor_section(config: &PpoConfig) -> Result<serde_json::Value> {
    Ok(json(&Value::serialize(&config.actor_rollout_ref.actor)?))
}

/// Returns the section `algorithm` as JSON, with words for floats that JSON lacks.
///
/// # Errors
/// If the section cannot be written.
pub(crate) fn section(config: &PpoConfig) -> Result<serde_json::Value> {
    Ok(json(&Value::serialize(&config.algorithm)?))
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(_, text) => text.clone().into(),
        Value::Char(_, c) => c.to_string().into(),
        Value::Bool(_, on) => (*on).into(),
        Value::Num(_, number) => match number.to_f64() {
            Some(number) => json_number::to_value(number),
            None => number.to_i128().and_then(|number| i64::try_from(number).ok()).into(),
        },
        Value::Empty(..) => serde_json::Value::Null,
        Value::Dict(_, entries) => entries.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
        Value::Array(_, items) => items.iter().map(json).collect(),
    }
}

/// Looks up a setting.
fn setting(settings: &Value, key: &str) -> Result<OptionValue> {
    let value = settings.find_ref(key).with_context(|| format!("{key} is not a setting"))?;
    Ok(match value {
        Value::Empty(..) => OptionValue::Unset,
        Value::Bool(_, on) => OptionValue::Bool(*on),
        Value::Num(_, number) => {
            OptionValue::Number(number.to_f64().or_else(|| Some(number.to_i128()? as f64)).context("a number")?)
        }
        Value::String(_, word) => OptionValue::Text(word.clone()),
        Value::Array(_, items) => match items.as_slice() {
            [Value::Num(_, low), Value::Num(_, high)] => {
                let number = |number: &Num| number.to_f64().or_else(|| Some(number.to_i128()? as f64)).context("a number");
                OptionValue::Pair([number(low)?, number(high)?])
            }
            _ => bail!("{key} is not a list of two numbers"),
        },
        _ => bail!("{key} is neither a switch nor a number nor a word"),
    })
}

pub(crate) fn normalize_advantages(config: &PpoConfig) -> Option<NormalizeAdvantages> {
    match config.algorithm.normalize_advantages {
        schema::AdvantageNormalization::None => None,
        schema::AdvantageNormalization::Sequences => Some(NormalizeAdvantages::Sequence),
        schema::AdvantageNormalization::Tokens => Some(NormalizeAdvantages::Token),
    }
}

/// # Errors
/// If no registry has the method.
pub(crate) fn pf_ppo(config: &PpoConfig) -> Result<Option<(&'static Reweighting, f64)>> {
    let (enabled, settings) = (config.algorithm.use_pf_ppo, &config.algorithm.pf_ppo);
    if !enabled {
        return Ok(None);
    }
    let method = pf_ppo::find(&settings.reweight_method).context("unknown reweight_method")?;
    Ok(Some((method, settings.weight_pow)))
}
