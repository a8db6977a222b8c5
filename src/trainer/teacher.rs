//! The teacher of on-policy distillation (`distillation`), from the settings.

use anyhow::{Context, Result, ensure};

use super::algorithms::options;
use super::inputs::Inputs;
use super::learning::distillation::{Distillation, Measure};
use crate::job::models::is_bfloat16;
use crate::job::second_model::SecondModel;
use crate::job::teacher::check_tokens;
use crate::job::unused_options::UnusedOption;
use burnish_algorithm::kl;
use burnish_algorithm::loss::PolicyObjective;
use burnish_algorithm::options::OptionValue;
use burnish_algorithm::policy_loss::{self, CLIPPING, DUAL_CLIP, LossOptions};
use burnish_config::PpoConfig;
use burnish_config::schema::{
    DistillationConfig, DistillationLossConfig, DistillationMode, LOSS_MODE, Location, RewardManager, TEACHER, TurnRewards,
};
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, DecoderConfig, Divergence, Init};

/// The reason why settings of advantages have no effect.
pub const ALONE: &str = "the teacher's is the only loss, and nothing reads advantages";

/// Returns the folder and the shape of the teacher, where there is one.
///
/// # Errors
/// A model that cannot read the sequences of the run or has other tokens.
pub fn decoder<'a>(config: &'a PpoConfig, inputs: &Inputs) -> Result<Option<(&'a Location, DecoderConfig)>> {
    let Some(path) = config.distillation.teacher() else { return Ok(None) };
    let theirs = HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(TEACHER)?;
    inputs.check_model(&theirs, config).with_context(|| format!("{TEACHER}={path}"))?;
    let own = inputs.decoder(config)?;
    let teacher = SecondModel { key: TEACHER, folder: path.as_path(), role: "teacher", first: "policy" };
    check_tokens(teacher, &inputs.tokenizer, (theirs.vocab_size, own.vocab_size))?;
    ensure!(
        theirs.vocab_size >= own.vocab_size,
        "{TEACHER}={path}: its vocabulary is padded to {} tokens, the policy's to {}, which may sample one that the teacher lacks; take a teacher with as many",
        theirs.vocab_size,
        own.vocab_size
    );
    let loss = &config.distillation.distillation_loss;
    let k = if loss.loss_mode == DistillationMode::ForwardKlTopk { loss.topk } else { 0 };
    ensure!(k <= own.vocab_size, "distillation.distillation_loss.topk={k}: there are {} tokens", own.vocab_size);
    Ok(Some((path, theirs)))
}

/// Loads the teacher, where there is one; it computes as the policy does.
///
/// # Errors
/// If [`decoder`] refuses it; weights that cannot be read or do not fit config.json.
pub fn load(config: &PpoConfig, inputs: &Inputs, policy: &CausalLm) -> Result<Option<Distillation>> {
    let Some((path, _)) = decoder(config, inputs)? else { return Ok(None) };
    let loaded = CausalLm::load(path.as_path(), Init::Pretrained, &policy.device).context(TEACHER)?;
    let bfloat16 = is_bfloat16(config.actor_rollout_ref.model.dtype, config.trainer.device, &policy.device);
    let loss = &config.distillation.distillation_loss;
    Ok(Some(Distillation {
        teacher: loaded.computing(bfloat16, false),
        measure: measure(loss)?,
        beside_rewards: loss.use_task_rewards.then_some(loss.distillation_loss_coef),
        loss_max_clamp: loss.loss_max_clamp.map(|most| most as f32),
        policy_gradient: if loss.use_policy_gradient { Some(policy_gradient(config)?) } else { None },
    }))
}

fn measure(loss: &DistillationLossConfig) -> Result<Measure> {
    Ok(match loss.loss_mode {
        DistillationMode::ForwardKlTopk => {
            Measure::TopK { k: loss.topk, least: loss.log_prob_min_clamp.map(|least| least as f32) }
        }
        DistillationMode::ReverseKl => Measure::Whole(Divergence::ReverseKl),
        DistillationMode::ForwardKl => Measure::Whole(Divergence::ForwardKl),
        DistillationMode::Jsd => Measure::Whole(Divergence::jsd(loss.beta)),
        sampled => Measure::Sampled(kl::find(sampled.as_str()).context("unknown loss_mode")?),
    })
}

/// The clipped policy loss, with the clip range of distillation.
fn policy_gradient(config: &PpoConfig) -> Result<PolicyObjective> {
    let loss = &config.distillation.distillation_loss;
    let vanilla = policy_loss::find("vanilla").context("no policy loss vanilla")?;
    let (low, high) = (loss.clip_ratio_low.unwrap_or(loss.clip_ratio), loss.clip_ratio_high.unwrap_or(loss.clip_ratio));
    let settings = options(config, vanilla.reads)?;
    let settings = settings.with("clip_ratio", loss.clip_ratio).with("clip_ratio_low", low).with("clip_ratio_high", high);
    Ok(PolicyObjective {
        policy_loss: vanilla,
        options: LossOptions::new(settings.with("delta", OptionValue::Unset)),
        entropy_coeff: 0.0,
        kl_loss: None,
        top_entropy_quantile: 1.0,
    })
}

/// The settings whose result nothing reads where the teacher's is the only loss. The settings of estimators and of the critic are not among them.
pub fn unread(config: &PpoConfig) -> Vec<UnusedOption> {
    macro_rules! keys {
        ($group:literal: $($name:literal)*) => {
            [$(concat!($group, $name)),*]
        };
    }
    let of_advantages = keys!("algorithm.":
        "adv_estimator" "custom_adv_estimator.path" "use_kl_in_reward" "kl_penalty" "kl_ctrl.type" "kl_ctrl.kl_coef" "kl_ctrl.horizon"
        "kl_ctrl.target_kl" "normalize_reward" "reward_clip_range" "whiten_rewards" "normalize_advantages");
    let of_weights = keys!("algorithm.rollout_correction.":
        "rollout_is" "rollout_is_threshold" "rollout_is_threshold_lower" "rollout_is_batch_normalize");
    let of_scores = keys!("algorithm.": "missing_eos_penalty" "stop_properly_penalty_coef");
    let of_manager = keys!("reward_model.reward_kwargs.":
        "max_resp_len" "overlong_buffer_cfg.enable" "overlong_buffer_cfg.len" "overlong_buffer_cfg.penalty_factor"
        "overlong_buffer_cfg.log");
    let (no_advantages, no_scores) = (!config.reads_advantages(), !config.reads_scores());
    let placed = no_advantages && config.algorithm.turn_rewards == TurnRewards::Place;
    let dapo = no_scores && config.reward_model.reward_manager == Some(RewardManager::Dapo);
    let all = |unused: bool, keys: &[&'static str], why| keys.iter().map(|key| (unused, *key, why)).collect::<Vec<_>>();
    [
        all(no_advantages, &of_advantages, ALONE),
        all(no_advantages, &["actor_rollout_ref.actor.calculate_sum_pi_squared"], ALONE),
        all(placed, &["algorithm.turn_rewards"], ALONE),
        all(!config.reads_importance_weights(), &of_weights, "the teacher's is the only loss, and has no importance weights"),
        all(no_scores, &of_scores, "the teacher's is the only loss, and nothing learns from scores"),
        all(no_scores, &of_manager, "the teacher's is the only loss, and nothing learns from scores"),
        all(dapo, &["reward_model.reward_manager"], "the teacher's is the only loss, and nothing learns from scores"),
    ]
    .concat()
}

/// The settings that have no effect beside those of distillation, and the other way round. `once`: true, with a reason, if every ratio
/// is 1.
pub fn unused_options(config: &DistillationConfig, once: (bool, &'static str)) -> Vec<UnusedOption> {
    macro_rules! key {
        ($name:literal) => {
            concat!("distillation.distillation_loss.", $name)
        };
    }
    let off = "distillation.enabled is false";
    let loss = &config.distillation_loss;
    let sparse = loss.loss_mode == DistillationMode::ForwardKlTopk;
    let both = loss.clip_ratio_low.is_some() && loss.clip_ratio_high.is_some();
    let (alone, direct) = ("the teacher's is the only loss", "it needs use_policy_gradient=true");
    let all = [
        TEACHER,
        key!("loss_mode"),
        key!("topk"),
        key!("beta"),
        key!("use_task_rewards"),
        key!("distillation_loss_coef"),
        key!("loss_max_clamp"),
        key!("log_prob_min_clamp"),
        key!("use_policy_gradient"),
        key!("clip_ratio"),
        key!("clip_ratio_low"),
        key!("clip_ratio_high"),
    ];
    let rows = [
        (!sparse, key!("topk"), "it needs loss_mode=forward_kl_topk"),
        (!sparse, key!("log_prob_min_clamp"), "it needs loss_mode=forward_kl_topk"),
        (loss.loss_mode != DistillationMode::Jsd, key!("beta"), "it needs loss_mode=jsd"),
        (!loss.use_task_rewards, key!("distillation_loss_coef"), alone),
        (!loss.use_policy_gradient, key!("clip_ratio"), direct),
        (!loss.use_policy_gradient, key!("clip_ratio_low"), direct),
        (!loss.use_policy_gradient, key!("clip_ratio_high"), direct),
        (both, key!("clip_ratio"), "clip_ratio_low and clip_ratio_high stand in its place"),
        (!loss.loss_mode.is_signed(), key!("clip_ratio_high"), "the loss is never negative, so that no advantage is positive"),
        (once.0, key!("clip_ratio"), once.1),
        (once.0, key!("clip_ratio_low"), once.1),
        (once.0, key!("clip_ratio_high"), once.1),
    ];
    // Those of the loss of the rewards; the dual clip is also that of the policy gradient.
    let of_rewards = [LOSS_MODE, "actor_rollout_ref.actor.policy_loss.top_entropy_quantile"];
    let of_rewards = CLIPPING.iter().copied().filter(|key| !loss.use_policy_gradient || *key != DUAL_CLIP).chain(of_rewards);
    let of_rewards = of_rewards.map(|key| (!loss.use_task_rewards, key, alone));
    let rows = rows.into_iter().chain(of_rewards);
    all.into_iter().map(|key| (!config.enabled, key, off)).chain(rows.filter(|_| config.enabled)).collect()
}
