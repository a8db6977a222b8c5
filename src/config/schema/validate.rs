//! What the types of [`PpoConfig`] cannot check.

use super::{OptimConfig, PpoConfig, ResumeMode, TrainerConfig, validate_algorithm, validate_critic, validate_reward};
use crate::config::Report;
use crate::config::plan::BatchPlan;
use crate::util::strftime::instant;

/// Estimators that compare the responses to one prompt.
const GROUP_ESTIMATORS: &[&str] = &[
    "rloo",
    "rloo_vectorized",
    "openrlhf_rloo",
    "grpo",
    "grpo_vectorized",
    "grpo_passk",
    "trl_grpo",
    "dr_grpo",
    "group_norm",
    "gpg",
    "opo",
    "gdpo",
    "trl_gdpo",
    "reinforce_baseline",
    "reinforce_plus_plus_baseline",
    "optimal_token_baseline",
    "tir_optimal_token_baseline",
];

pub fn ppo(config: &PpoConfig, report: &mut Report) {
    ranges(config, report);
    agreement(config, report);
    validate_algorithm::algorithm(config, report);
    validate_critic::critic(config, report);
    lora(config, report);
    template_date(config.data.chat_template_date.as_deref(), report);
    validate_reward::keys(&config.rewards(), report);
    validate_reward::reward_model(config, report);
    if let Err(error) = BatchPlan::new(config) {
        report.wrong(&error.key, error.message, error.help);
    }
}

fn lora(config: &PpoConfig, report: &mut Report) {
    let (policy, critic) = (&config.actor_rollout_ref.model, &config.critic.model);
    policy.lora().validate(policy.init, report);
    if config.has_critic() {
        critic.lora().validate(critic.init, report);
    }
    if policy.lora().is_on() && config.actor_rollout_ref.reference.sync_ref_model {
        let key = "actor_rollout_ref.ref.sync_ref_model";
        let message = format!("`{key}`: with LoRA the reference is the model without its adapter, which does not move");
        report.wrong(key, message, format!("write {key}=false"));
    }
}

/// `data.chat_template_date`, which every kind with prompts has.
pub(super) fn template_date(date: Option<&str>, report: &mut Report) {
    if let Some(text) = date.filter(|text| instant(text).is_none()) {
        let message = format!("`data.chat_template_date` must be a date, or a date and a time, not {text:?}");
        report.wrong("data.chat_template_date", message, "write it as 2025-01-31 or 2025-01-31T18:30:00");
    }
}

/// A bound, whether a number keeps to it, and how a message calls it.
pub(super) type Bound = (fn(f64) -> bool, &'static str);
pub(super) const POSITIVE: Bound = (|x| x > 0.0 && x.is_finite(), "above 0");
pub(super) const NOT_NEGATIVE: Bound = (|x| x >= 0.0 && x.is_finite(), "0 or above");
pub(super) const FINITE: Bound = (f64::is_finite, "a finite number");
pub(super) const FRACTION: Bound = (|x| (0.0..=1.0).contains(&x), "from 0 to 1");
pub(super) const PROBABILITY: Bound = (|x| x > 0.0 && x <= 1.0, "above 0 and at most 1");
pub(super) const DECAY: Bound = (|x| (0.0..1.0).contains(&x), "from 0 to below 1");
pub(super) const ABOVE_ONE: Bound = (|x| x > 1.0 && x.is_finite(), "above 1");
pub(super) const COUNT: Bound = (|x| x >= 1.0, "at least 1");
pub(super) const COUNT_OR_ALL: Bound = (|x| x >= 1.0 || x == -1.0, "-1 or at least 1");
pub(super) const TOP_K: Bound = (|x| x >= -1.0, "-1, 0 or a positive integer");

fn ranges(config: &PpoConfig, report: &mut Report) {
    let (actor, rollout, reference) =
        (&config.actor_rollout_ref.actor, &config.actor_rollout_ref.rollout, &config.actor_rollout_ref.reference);
    let (data, algorithm, trainer) = (&config.data, &config.algorithm, &config.trainer);
    let mut rows: Vec<(&str, f64, Bound)> = vec![
        ("data.max_prompt_length", data.max_prompt_length as f64, COUNT),
        ("data.max_response_length", data.max_response_length as f64, COUNT),
        ("data.train_max_samples", data.train_max_samples as f64, COUNT_OR_ALL),
        ("data.val_max_samples", data.val_max_samples as f64, COUNT_OR_ALL),
        ("actor_rollout_ref.actor.grad_clip", actor.grad_clip, POSITIVE),
        ("actor_rollout_ref.actor.clip_ratio", actor.clip_ratio, POSITIVE),
        ("actor_rollout_ref.actor.clip_ratio_c", actor.clip_ratio_c, ABOVE_ONE),
        ("actor_rollout_ref.actor.entropy_coeff", actor.entropy_coeff, FINITE),
        ("actor_rollout_ref.actor.kl_loss_coef", actor.kl_loss_coef, FINITE),
        ("actor_rollout_ref.rollout.temperature", rollout.temperature, POSITIVE),
        ("actor_rollout_ref.rollout.top_p", rollout.top_p, PROBABILITY),
        ("actor_rollout_ref.rollout.top_k", rollout.top_k as f64, TOP_K),
        ("actor_rollout_ref.rollout.min_p", rollout.min_p, FRACTION),
        ("actor_rollout_ref.rollout.repetition_penalty", rollout.repetition_penalty, POSITIVE),
        ("actor_rollout_ref.rollout.max_num_seqs", rollout.max_num_seqs as f64, COUNT),
        ("actor_rollout_ref.rollout.max_num_batched_tokens", rollout.max_num_batched_tokens as f64, COUNT),
        ("actor_rollout_ref.rollout.val_kwargs.top_p", rollout.val_kwargs.top_p, PROBABILITY),
        ("actor_rollout_ref.rollout.val_kwargs.top_k", rollout.val_kwargs.top_k as f64, TOP_K),
        ("actor_rollout_ref.rollout.val_kwargs.temperature", rollout.val_kwargs.temperature, NOT_NEGATIVE),
        ("actor_rollout_ref.rollout.val_kwargs.n", rollout.val_kwargs.n as f64, COUNT),
        ("actor_rollout_ref.ref.ref_model_mixup_alpha", reference.ref_model_mixup_alpha, PROBABILITY),
        ("actor_rollout_ref.ref.ref_model_sync_steps", reference.ref_model_sync_steps as f64, COUNT),
        ("algorithm.gamma", algorithm.gamma, FRACTION),
        ("algorithm.lam", algorithm.lam, FRACTION),
        ("algorithm.kl_ctrl.kl_coef", algorithm.kl_ctrl.kl_coef, NOT_NEGATIVE),
        ("algorithm.kl_ctrl.horizon", algorithm.kl_ctrl.horizon as f64, COUNT),
        ("algorithm.kl_ctrl.target_kl", algorithm.kl_ctrl.target_kl, POSITIVE),
        ("trainer.total_epochs", trainer.total_epochs as f64, COUNT),
    ];
    let optional = [
        ("data.val_batch_size", data.val_batch_size.map(|size| size as f64), COUNT),
        ("actor_rollout_ref.actor.clip_ratio_low", actor.clip_ratio_low, POSITIVE),
        ("actor_rollout_ref.actor.clip_ratio_high", actor.clip_ratio_high, POSITIVE),
        ("actor_rollout_ref.actor.loss_scale_factor", actor.loss_scale_factor, POSITIVE),
        ("trainer.total_training_steps", trainer.total_training_steps.map(|steps| steps as f64), COUNT),
        ("trainer.max_actor_ckpt_to_keep", trainer.max_actor_ckpt_to_keep.map(|count| count as f64), COUNT),
    ];
    rows.extend(optional.into_iter().filter_map(|(key, value, bound)| Some((key, value?, bound))));
    check(rows, report);
    optim("actor_rollout_ref.actor.optim", &actor.optim, report);
    let has_reference = actor.use_kl_loss || algorithm.use_kl_in_reward;
    let passes = [
        (
            "actor_rollout_ref.ref",
            has_reference && !reference.log_prob_use_dynamic_bsz,
            reference.log_prob_micro_batch_size_per_gpu,
        ),
        ("actor_rollout_ref.rollout", !rollout.log_prob_use_dynamic_bsz, rollout.log_prob_micro_batch_size_per_gpu),
    ];
    for (part, by_trajectories, size) in passes {
        let key = format!("{part}.log_prob_micro_batch_size_per_gpu");
        if by_trajectories && size.is_none_or(|size| size == 0) {
            report.wrong(
                &key,
                format!("`{key}` must be at least 1"),
                format!("write {key}=N, or {part}.log_prob_use_dynamic_bsz=true"),
            );
        }
    }
}

/// Reports the values that do not keep to their bounds.
pub(super) fn check(rows: Vec<(&str, f64, Bound)>, report: &mut Report) {
    for (key, value, (holds, bound)) in rows {
        if !holds(value) {
            report.wrong(key, format!("`{key}` must be {bound}, not {value}"), "");
        }
    }
}

/// Ranges of AdamW and its schedule.
pub(super) fn optim(group: &str, optim: &OptimConfig, report: &mut Report) {
    let rows: [(&str, f64, Bound); 9] = [
        ("lr", optim.lr, NOT_NEGATIVE),
        ("lr_warmup_steps_ratio", optim.lr_warmup_steps_ratio, FRACTION),
        ("min_lr_ratio", optim.min_lr_ratio, FRACTION),
        ("num_cycles", optim.num_cycles, POSITIVE),
        ("total_training_steps", optim.total_training_steps as f64, COUNT_OR_ALL),
        ("weight_decay", optim.weight_decay, NOT_NEGATIVE),
        ("betas", optim.betas[0], DECAY),
        ("betas", optim.betas[1], DECAY),
        ("eps", optim.eps, POSITIVE),
    ];
    let rows = rows.map(|(name, value, bound)| (format!("{group}.{name}"), value, bound));
    check(rows.iter().map(|(key, value, bound)| (key.as_str(), *value, *bound)).collect(), report);
}

/// The least and the most tokens of a response, and the most of a prompt and a response together.
pub(super) fn lengths(
    group: &str,
    (prompt, response): (usize, usize),
    min_tokens: usize,
    max_model_len: Option<usize>,
    report: &mut Report,
) {
    if min_tokens > response {
        let key = format!("{group}.min_tokens");
        report.wrong(&key, format!("`{key}` is {min_tokens}, but a response has at most {response} tokens"), "");
    }
    if let Some(most) = max_model_len.filter(|&most| most <= prompt) {
        let key = format!("{group}.max_model_len");
        let message = format!("`{key}` is {most}, which leaves no room for a response to a prompt of {prompt} tokens");
        report.wrong(&key, message, format!("write {key}={} or more, or null", prompt + 1));
    }
}

/// An empty stop string would end every response at once.
pub(super) fn stop_strings(key: &str, stop: &[String], report: &mut Report) {
    if stop.iter().any(String::is_empty) {
        report.wrong(key, format!("`{key}` has an empty text"), "");
    }
}

/// Which checkpoints stay.
fn best_and_kept(trainer: &TrainerConfig, report: &mut Report) {
    let (actor, critic) = (trainer.max_actor_ckpt_to_keep, trainer.max_critic_ckpt_to_keep);
    if let Some(critic) = critic.filter(|critic| Some(*critic) != actor) {
        let key = "trainer.max_critic_ckpt_to_keep";
        let actor = actor.map_or("null, which keeps all".to_owned(), |actor| actor.to_string());
        let message = format!("`{key}` is {critic}, but `trainer.max_actor_ckpt_to_keep` is {actor}");
        report.wrong(
            key,
            message,
            "a checkpoint is kept or deleted as a whole: set both to the same number, or this one to null",
        );
    }
    if trainer.metric_for_best_model.is_some() && (trainer.test_freq.is_never() || trainer.save_freq.is_never()) {
        let key = "trainer.metric_for_best_model";
        let message = format!("`{key}` compares steps that are both validated and saved, and there will be none");
        report.wrong(key, message, "set trainer.test_freq and trainer.save_freq to positive numbers, or this to null");
    }
}

/// Keys that must agree with each other.
fn agreement(config: &PpoConfig, report: &mut Report) {
    let (data, rollout, actor) = (&config.data, &config.actor_rollout_ref.rollout, &config.actor_rollout_ref.actor);
    let estimator = config.algorithm.adv_estimator.as_str();
    if rollout.n == 1 && GROUP_ESTIMATORS.contains(&estimator) {
        report.wrong(
            "actor_rollout_ref.rollout.n",
            format!("`{estimator}` compares the responses to one prompt, but `actor_rollout_ref.rollout.n` is 1"),
            "write actor_rollout_ref.rollout.n=2 or more, or algorithm.adv_estimator=reinforce_plus_plus",
        );
    }
    if !rollout.do_sample && GROUP_ESTIMATORS.contains(&estimator) {
        report.wrong(
            "actor_rollout_ref.rollout.do_sample",
            format!("`{estimator}` compares the responses to one prompt, which are all the same without sampling"),
            "write actor_rollout_ref.rollout.do_sample=true",
        );
    }
    let mirrors = [
        ("actor_rollout_ref.rollout.prompt_length", rollout.prompt_length, "data.max_prompt_length", data.max_prompt_length),
        (
            "actor_rollout_ref.rollout.response_length",
            rollout.response_length,
            "data.max_response_length",
            data.max_response_length,
        ),
    ];
    for (key, value, master, wanted) in mirrors {
        if value != wanted {
            report.wrong(
                key,
                format!("`{key}` is {value}, but `{master}` is {wanted}"),
                format!("set {master} and leave {key} alone"),
            );
        }
    }
    let group = "actor_rollout_ref.rollout";
    let longest = (data.max_prompt_length, data.max_response_length);
    lengths(group, longest, rollout.min_tokens, rollout.max_model_len, report);
    stop_strings("actor_rollout_ref.rollout.stop", &rollout.stop, report);
    let longest = data.max_prompt_length + data.max_response_length;
    let budgets = [
        ("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", actor.use_dynamic_bsz, actor.ppo_max_token_len_per_gpu),
        (
            "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu",
            config.actor_rollout_ref.reference.log_prob_use_dynamic_bsz,
            config.actor_rollout_ref.reference.log_prob_max_token_len_per_gpu,
        ),
        (
            "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
            rollout.log_prob_use_dynamic_bsz,
            rollout.log_prob_max_token_len_per_gpu,
        ),
    ];
    for (key, used, budget) in budgets {
        if used && budget < longest {
            let message = format!("`{key}` is {budget}, but one sequence may have {longest} tokens (prompt and response)");
            report.wrong(key, message, format!("write {key}={longest} or more"));
        }
    }
    best_and_kept(&config.trainer, report);
    if config.trainer.resume_mode == ResumeMode::ResumePath && config.trainer.resume_from_path.is_none() {
        let help = "write trainer.resume_from_path=…/global_step_N";
        report.wrong("trainer.resume_from_path", "`trainer.resume_mode=resume_path` needs `trainer.resume_from_path`", help);
    }
}
