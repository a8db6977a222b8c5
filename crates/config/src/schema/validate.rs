//! Checks of [`PpoConfig`] that its types cannot express.

use super::loadable::Schema;
use super::place::Place;
use super::ppo::{ADV_ESTIMATOR, LOSS_MODE, PpoConfig};
use super::trainer::{ResumeMode, TrainerConfig};
use super::{validate_agent, validate_algorithm, validate_critic, validate_distillation, validate_reward};
use crate::plan::BatchPlan;
use crate::{Choices, Kind, Report};
use burnish_registry::Need;
use burnish_util::strftime::instant;

impl Schema for PpoConfig {
    const KIND: Kind = Kind::Rl;

    fn completed(mut self, choices: &Choices) -> Self {
        let needed = choices.needs(ADV_ESTIMATOR, &self.algorithm.adv_estimator, Need::Critic);
        self.critic.enable.get_or_insert(needed);
        let mode = &self.actor_rollout_ref.actor.policy_loss.loss_mode;
        self.actor_rollout_ref.reference.is_in_loss = choices.needs(LOSS_MODE, mode, Need::Reference);
        self
    }

    fn places(&mut self) -> Vec<Place<'_>> {
        self.all_places()
    }

    fn validate(&self, report: &mut Report) {
        ppo(self, report);
    }
}

pub fn ppo(config: &PpoConfig, report: &mut Report) {
    passes(config, report);
    agreement(config, report);
    validate_algorithm::algorithm(config, report);
    validate_critic::critic(config, report);
    config.actor_rollout_ref.actor.optim.validate("actor_rollout_ref.actor.optim", report);
    if config.has_critic() {
        config.critic.optim.validate("critic.optim", report);
    }
    lora(config, report);
    reference(config, report);
    validate_distillation::distillation(config, report);
    template_date(config.data.chat_template_date.as_deref(), report);
    validate_reward::keys(&config.rewards(), report);
    validate_reward::reward_model(config, report);
    validate_agent::agent(&config.actor_rollout_ref.rollout.conversations(), report);
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

fn reference(config: &PpoConfig, report: &mut Report) {
    let reference = &config.actor_rollout_ref.reference;
    if reference.sync_ref_model && reference.model.path.is_some() {
        let key = "actor_rollout_ref.ref.model.path";
        let message =
            format!("`{key}`: a reference that follows the policy (`actor_rollout_ref.ref.sync_ref_model`) starts as the policy");
        report.wrong(key, message, format!("write {key}=null, or actor_rollout_ref.ref.sync_ref_model=false"));
    }
}

/// Checks `data.chat_template_date`, which every kind with prompts has.
pub(super) fn template_date(date: Option<&str>, report: &mut Report) {
    if let Some(text) = date.filter(|text| instant(text).is_none()) {
        let message = format!("`data.chat_template_date` must be a date, or a date and a time, not {text:?}");
        report.wrong("data.chat_template_date", message, "write it as 2025-01-31 or 2025-01-31T18:30:00");
    }
}

/// Checks the sizes of forward passes, which are only required where passes are cut by trajectories.
fn passes(config: &PpoConfig, report: &mut Report) {
    let (rollout, reference) = (&config.actor_rollout_ref.rollout, &config.actor_rollout_ref.reference);
    let passes = [
        (
            "actor_rollout_ref.ref",
            (config.has_reference() || config.distillation.passes_before()) && !reference.log_prob_use_dynamic_bsz,
            reference.log_prob_micro_batch_size_per_gpu,
        ),
        ("actor_rollout_ref.rollout", !rollout.log_prob_use_dynamic_bsz, rollout.log_prob_micro_batch_size_per_gpu),
    ];
    for (part, by_trajectories, size) in passes {
        let key = format!("{part}.log_prob_micro_batch_size_per_gpu");
        if by_trajectories && size.is_none() {
            report.wrong(
                &key,
                format!("`{key}` is null, so the size of a forward pass is not known"),
                format!("write {key}=N, or {part}.log_prob_use_dynamic_bsz=true"),
            );
        }
    }
}

/// Checks the minimum and maximum length of a response, and the maximum length of a prompt and a response together.
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

/// Refuses an empty stop string, which would end every response at once.
pub(super) fn stop_strings(key: &str, stop: &[String], report: &mut Report) {
    if stop.iter().any(String::is_empty) {
        report.wrong(key, format!("`{key}` has an empty text"), "");
    }
}

/// Checks the settings that decide which checkpoints are kept.
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

/// Checks the keys that must agree with each other.
fn agreement(config: &PpoConfig, report: &mut Report) {
    let (data, rollout, actor) = (&config.data, &config.actor_rollout_ref.rollout, &config.actor_rollout_ref.actor);
    let estimator = config.algorithm.adv_estimator.as_str();
    let compares = config.reads_advantages() && report.choices.needs(ADV_ESTIMATOR, estimator, Need::Group);
    if rollout.n == 1 && compares {
        report.wrong(
            "actor_rollout_ref.rollout.n",
            format!("`{estimator}` compares the responses to one prompt, but `actor_rollout_ref.rollout.n` is 1"),
            "write actor_rollout_ref.rollout.n=2 or more, or algorithm.adv_estimator=reinforce_plus_plus",
        );
    }
    if !rollout.do_sample && compares {
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
    rollout.token_rules().check("actor_rollout_ref.rollout", report);
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
