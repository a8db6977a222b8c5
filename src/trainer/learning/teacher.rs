//! The teacher of on-policy distillation (`distillation`), from the settings.

use anyhow::{Context, Result, ensure};

use super::distillation::{Distillation, TeacherMeasure};
use super::self_teacher::{TeacherModel, TeacherPrompts};
use crate::job::models::is_bfloat16;
use crate::job::second_model::SecondModel;
use crate::job::teacher::check_tokens;
use crate::job::unused_options::{Condition, UnusedOption, table};
use crate::trainer::algorithms::options;
use crate::trainer::setup::inputs::TrainerInputs;
use burnish_algorithm::kl;
use burnish_algorithm::loss::PolicyObjective;
use burnish_algorithm::options::OptionValue;
use burnish_algorithm::policy_loss::{self, CLIPPING, DUAL_CLIP, LossOptions};
use burnish_algorithm::teacher_loss;
use burnish_config::PpoConfig;
use burnish_config::schema::{
    DistillationConfig, DistillationMode, LOSS_FILE, LOSS_MODE, Location, LossSupport, RewardManager, TEACHER, TeacherModelKind,
    TurnRewards,
};
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, DecoderConfig, Divergence, Init};

/// The settings of prompts made of successful responses.
const SDPO: [&str; 10] = [
    "distillation.sdpo.success_reward_threshold",
    "distillation.sdpo.dont_reprompt_on_self_success",
    "distillation.sdpo.use_successful_as_teacher",
    "distillation.sdpo.include_environment_feedback",
    "distillation.sdpo.environment_feedback_only_without_solution",
    "distillation.sdpo.remove_thinking_from_demonstration",
    "distillation.sdpo.max_reprompt_len",
    "distillation.sdpo.reprompt_template",
    "distillation.sdpo.solution_template",
    "distillation.sdpo.feedback_template",
];

/// Reason why settings of advantages have no effect.
pub(crate) const ALONE: &str = "the teacher's is the only loss, and nothing reads advantages";

/// Returns the folder and the shape of the teacher, if the run has one.
///
/// # Errors
/// If the model cannot read the sequences of the run or has other tokens.
pub(crate) fn decoder<'a>(config: &'a PpoConfig, inputs: &TrainerInputs) -> Result<Option<(&'a Location, DecoderConfig)>> {
    let own = inputs.decoder(config)?;
    let loss = &config.distillation.distillation_loss;
    let (name, k) =
        if loss.loss_mode == DistillationMode::ForwardKlTopk { ("topk", loss.topk) } else { ("loss_top_k", loss.loss_top_k) };
    // The teacher may be the policy itself.
    ensure!(
        !config.distillation.enabled || k <= own.vocab_size,
        "distillation.distillation_loss.{name}={k}: the teacher has {} tokens",
        own.vocab_size
    );
    let Some(path) = config.distillation.teacher() else { return Ok(None) };
    let theirs = HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(TEACHER)?;
    inputs.check_model(&theirs, config).with_context(|| format!("{TEACHER}={path}"))?;
    let teacher = SecondModel { key: TEACHER, folder: path.as_path(), role: "teacher", first: "policy" };
    check_tokens(teacher, &inputs.tokenizer, (theirs.vocab_size, own.vocab_size))?;
    ensure!(
        theirs.vocab_size >= own.vocab_size,
        "{TEACHER}={path}: its vocabulary is padded to {} tokens, the policy's to {}, which may sample a token that the teacher lacks; choose a teacher with as many",
        theirs.vocab_size,
        own.vocab_size
    );
    Ok(Some((path, theirs)))
}

/// Loads the teacher, if the run has one; it computes in the policy's dtype.
///
/// # Errors
/// If [`decoder`] refuses it, or weights cannot be read or do not fit config.json.
pub(crate) fn load(config: &PpoConfig, inputs: &TrainerInputs, policy: &CausalLm) -> Result<Option<Distillation>> {
    let teacher = match (TeacherModel::of_policy(config, policy)?, decoder(config, inputs)?) {
        (Some(own), _) => own,
        (None, Some((path, _))) => {
            let loaded = CausalLm::load(path.as_path(), Init::Pretrained, &policy.device).context(TEACHER)?;
            let bfloat16 = is_bfloat16(config.actor_rollout_ref.model.dtype, config.trainer.device, &policy.device);
            TeacherModel::Fixed(loaded.computing(bfloat16, false))
        }
        (None, None) => return Ok(None),
    };
    let loss = &config.distillation.distillation_loss;
    Ok(Some(Distillation {
        prompts: TeacherPrompts::compose(config, inputs, teacher.get(policy))?,
        teacher,
        measure: measure(config)?,
        is_clip: loss.distillation_is_clip,
        with_rewards: loss.use_task_rewards.then_some(loss.distillation_loss_coef),
        in_advantages: config.distillation.in_advantages().is_some(),
        loss_max_clamp: loss.loss_max_clamp.map(|max| max as f32),
        policy_gradient: if loss.use_policy_gradient { Some(policy_gradient(config)?) } else { None },
    }))
}

fn measure(config: &PpoConfig) -> Result<TeacherMeasure> {
    let loss = &config.distillation.distillation_loss;
    let whole = |beta: f64, auto: LossSupport| match (loss.loss_top_k, loss.loss_support) {
        (0, _) => TeacherMeasure::Whole(Divergence::jsd(beta)),
        (k, of) => {
            let of = if of == LossSupport::Auto { auto } else { of };
            TeacherMeasure::Support { k, beta, add_tail: loss.loss_add_tail, of }
        }
    };
    let support = |beta: f64| match beta {
        0.0 => LossSupport::Teacher,
        1.0 => LossSupport::Student,
        _ => LossSupport::Both,
    };
    Ok(match loss.loss_mode {
        DistillationMode::ForwardKlTopk => {
            TeacherMeasure::TopK { k: loss.topk, min: loss.log_prob_min_clamp.map(|min| min as f32) }
        }
        DistillationMode::ReverseKl => whole(1.0, support(1.0)),
        DistillationMode::ForwardKl => whole(0.0, support(0.0)),
        DistillationMode::Jsd => whole(loss.beta, support(loss.beta)),
        mode if mode.is_policy_gradient() => {
            let own = teacher_loss::find(mode.as_str()).context("unknown loss_mode")?;
            TeacherMeasure::Own(own, options(config, own.reads)?)
        }
        sampled => TeacherMeasure::Sampled(kl::find(sampled.as_str()).context("unknown loss_mode")?),
    })
}

/// Returns the clipped policy loss, with the clip range of distillation.
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
        off_policy_mask: None,
    })
}

/// Returns the settings whose result is unused if the teacher's loss is the only loss, without the settings of estimators and the
/// critic.
pub(crate) fn unread(config: &PpoConfig) -> Vec<UnusedOption> {
    macro_rules! keys {
        ($group:literal: $($name:literal)*) => {
            [$(concat!($group, $name)),*]
        };
    }
    let of_advantages = keys!("algorithm.":
        "adv_estimator" "custom_adv_estimator.path" "use_kl_in_reward" "kl_penalty" "kl_ctrl.type" "kl_ctrl.kl_coef" "kl_ctrl.horizon"
        "kl_ctrl.target_kl" "length_penalty.num_output_tokens_weight" "length_penalty.num_input_tokens_weight"
        "length_penalty.num_turns_weight" "normalize_reward" "reward_clip_range" "whiten_rewards" "normalize_advantages");
    let of_weights = keys!("algorithm.rollout_correction.":
        "rollout_is" "rollout_is_threshold" "rollout_is_threshold_lower" "rollout_is_batch_normalize" "count_rejected");
    let of_scores = keys!("algorithm.": "missing_eos_penalty" "stop_properly_penalty_coef");
    let of_manager = keys!("reward_model.reward_kwargs.":
        "max_resp_len" "overlong_buffer_cfg.enable" "overlong_buffer_cfg.len" "overlong_buffer_cfg.penalty_factor"
        "overlong_buffer_cfg.log");
    let (no_advantages, no_scores) = (!config.reads_advantages(), !config.reads_scores());
    let placed = no_advantages && config.algorithm.turn_rewards == TurnRewards::Place;
    let dapo = no_scores && config.reward_model.reward_manager == Some(RewardManager::Dapo);
    let no_weights = (!config.reads_importance_weights(), "the teacher's is the only loss, and has no importance weights");
    let scores = "the teacher's is the only loss, and nothing learns from scores";
    table(&[
        ((no_advantages, ALONE), &of_advantages),
        ((no_advantages, ALONE), &["actor_rollout_ref.actor.calculate_sum_pi_squared"]),
        ((placed, ALONE), &["algorithm.turn_rewards"]),
        (no_weights, &of_weights),
        ((no_scores, scores), &of_scores),
        ((no_scores, scores), &of_manager),
        ((dapo, scores), &["reward_model.reward_manager"]),
    ])
}

/// Returns the settings that distillation makes useless, and the settings of distillation without an effect. `once`: true, with a
/// reason, if every ratio is 1.
pub(crate) fn unused_options(config: &DistillationConfig, once: Condition) -> Vec<UnusedOption> {
    macro_rules! key {
        ($name:literal) => {
            concat!("distillation.distillation_loss.", $name)
        };
    }
    if !config.enabled {
        let all = [
            TEACHER,
            key!("loss_mode"),
            key!("topk"),
            key!("beta"),
            key!("loss_top_k"),
            key!("loss_support"),
            key!("loss_add_tail"),
            key!("distillation_is_clip"),
            key!("num_loss_tokens_to_skip"),
            key!("iw_opd_gamma"),
            key!("iw_opd_epsilon"),
            key!("use_task_rewards"),
            key!("distillation_loss_coef"),
            key!("opd_kl_coef"),
            key!("loss_max_clamp"),
            key!("log_prob_min_clamp"),
            key!("use_policy_gradient"),
            key!("clip_ratio"),
            key!("clip_ratio_low"),
            key!("clip_ratio_high"),
            "distillation.teacher_model_kind",
            "distillation.teacher_update_rate",
            "distillation.teacher_sync_steps",
            "distillation.privileged_context_key",
            "distillation.teacher_prompt_template",
            "distillation.teacher_context",
            "distillation.sdpo.enable",
        ];
        let all: Vec<&str> = all.into_iter().chain(SDPO).collect();
        return table(&[((true, "distillation.enabled is false"), &all)]);
    }
    let loss = &config.distillation_loss;
    let dense = (loss.loss_mode != DistillationMode::ForwardKlTopk, "it needs loss_mode=forward_kl_topk");
    let other = (loss.loss_mode != DistillationMode::Jsd, "it needs loss_mode=jsd");
    let sparse = matches!(loss.loss_mode, DistillationMode::ReverseKl | DistillationMode::ForwardKl | DistillationMode::Jsd);
    let unlimited = (!sparse, "it needs loss_mode=reverse_kl, forward_kl or jsd");
    let no_support = (!sparse || loss.loss_top_k == 0, "it needs loss_top_k above 0, with reverse_kl, forward_kl or jsd");
    let stays = (config.kind() != Some(TeacherModelKind::Ema), "it needs teacher_model_kind=ema");
    let shows_nothing =
        (config.context_key().is_none() || config.sdpo().is_some(), "it needs privileged_context_key, without sdpo");
    let no_sdpo = (config.sdpo().is_none(), "distillation.sdpo.enable is false");
    let no_solution = (!config.sdpo.use_successful_as_teacher, "distillation.sdpo.use_successful_as_teacher is false");
    let no_feedback = (!config.sdpo.include_environment_feedback, "distillation.sdpo.include_environment_feedback is false");
    let unread_context = (config.sdpo().is_some() && no_feedback.0, no_feedback.1);
    let no_iw_opd = (loss.loss_mode != DistillationMode::IwOpd, "it needs loss_mode=iw_opd");
    let alone = (!loss.use_task_rewards, "the teacher's is the only loss");
    let direct = (!loss.use_policy_gradient, "it needs use_policy_gradient=true");
    let both = loss.clip_ratio_low.is_some() && loss.clip_ratio_high.is_some();
    let both = (both, "clip_ratio_low and clip_ratio_high replace it");
    let unsigned = (!loss.loss_mode.is_signed(), "the loss is never negative, so that no advantage is positive");
    let clipping = [key!("clip_ratio"), key!("clip_ratio_low"), key!("clip_ratio_high")];
    // The dual clip also belongs to the policy gradient of the teacher's loss.
    let dual_clip = |key: &&str| *key == DUAL_CLIP && loss.use_policy_gradient;
    let of_task: Vec<&str> = CLIPPING.iter().copied().filter(|key| !dual_clip(key)).collect();
    table(&[
        (dense, &[key!("topk"), key!("log_prob_min_clamp")]),
        (other, &[key!("beta")]),
        (stays, &["distillation.teacher_update_rate", "distillation.teacher_sync_steps"]),
        (no_sdpo, &SDPO),
        (
            no_solution,
            &[
                "distillation.sdpo.dont_reprompt_on_self_success",
                "distillation.sdpo.remove_thinking_from_demonstration",
                "distillation.sdpo.solution_template",
                "distillation.sdpo.environment_feedback_only_without_solution",
            ],
        ),
        (no_feedback, &["distillation.sdpo.environment_feedback_only_without_solution", "distillation.sdpo.feedback_template"]),
        (shows_nothing, &["distillation.teacher_prompt_template", "distillation.teacher_context"]),
        (unlimited, &[key!("loss_top_k")]),
        (no_support, &[key!("loss_support"), key!("loss_add_tail")]),
        (no_iw_opd, &[key!("iw_opd_gamma"), key!("iw_opd_epsilon")]),
        (once, &[key!("distillation_is_clip")]),
        (unread_context, &["distillation.privileged_context_key"]),
        (alone, &[key!("distillation_loss_coef")]),
        (
            (loss.opd_kl_coef.is_some(), "opd_kl_coef puts the teacher into the advantages"),
            &[
                key!("distillation_loss_coef"),
                key!("loss_max_clamp"),
                key!("use_policy_gradient"),
                key!("distillation_is_clip"),
                key!("num_loss_tokens_to_skip"),
            ],
        ),
        ((loss.opd_kl_coef.is_some(), "opd_kl_coef puts the teacher into the advantages"), &clipping),
        (direct, &clipping),
        (both, &[key!("clip_ratio")]),
        (unsigned, &[key!("clip_ratio_high")]),
        (once, &clipping),
        (alone, &of_task),
        (
            alone,
            &[
                LOSS_MODE,
                LOSS_FILE,
                "actor_rollout_ref.actor.policy_loss.top_entropy_quantile",
                "actor_rollout_ref.actor.policy_loss.off_policy_mask_threshold",
            ],
        ),
    ])
}
