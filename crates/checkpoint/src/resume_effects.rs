//! Effects of changed settings on a resumed run. Every key of the schemas has exactly one effect, so a new key needs a decision.

use burnish_config::compat::fits_key;

/// A part of a checkpoint that fits only the settings it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPart {
    /// Weights and optimizer of the policy (`model`, `optimizer`).
    Policy,
    /// Weights and optimizer of the critic (`model`, `optimizer`).
    Critic,
    /// Position in the data, and the random streams (`extra`).
    Data,
}

/// Effect of a changed setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeEffect {
    /// Not reported: the change does not affect the resumed run, for the given reason.
    Free(&'static str),
    /// Takes effect from the next step, and is reported.
    Effect,
    /// Takes effect and is reported like [`ChangeEffect::Effect`]. Validation measures something else afterwards, so the best
    /// value so far is no longer comparable.
    Validation,
    /// Refused if this part is loaded, because its contents would mean something else.
    Refused(CheckpointPart),
}
use ChangeEffect::{Effect, Free, Refused, Validation};

const SHOWN: ChangeEffect = Free("affects only saved files and output");
const MEMORY: ChangeEffect = Free("memory and speed");
const LENGTH: ChangeEffect = Free("the number of steps is reported instead");
const OPTIMIZER: ChangeEffect = Free("a checkpoint says which optimizer its state is of, and another one is refused");
const CONTENT: ChangeEffect = Free("the prompts of validation are compared themselves");

/// Every key, or pattern of keys as in the table of verl's keys, with the effect of its change. No key fits two of them.
const CHANGES: &[(ChangeEffect, &[&str])] = &[
    (LENGTH, &["trainer.total_epochs", "trainer.total_training_steps"]),
    (SHOWN, &["trainer.project_name", "trainer.experiment_name", "trainer.default_local_dir", "trainer.resume_mode"]),
    (SHOWN, &["trainer.resume_from_path", "trainer.logger", "trainer.wandb_proxy", "trainer.log_*", "trainer.*_data_dir"]),
    (
        SHOWN,
        &[
            "trainer.num_sample_generations",
            "trainer.price_per_hour",
            "trainer.save_freq",
            "trainer.save_best",
            "trainer.test_freq",
            "trainer.eval_delay",
            "trainer.val_before_train",
        ],
    ),
    (Free("decides about later alarms"), &["trainer.on_alarm"]),
    (SHOWN, &["trainer.val_only", "trainer.max_*", "**.checkpoint.*"]),
    (Validation, &["trainer.metric_for_best_model", "trainer.greater_is_better"]),
    (Effect, &["trainer.early_stopping_*", "algorithm.neftune_noise_alpha"]),
    (Effect, &["trainer.metric_names", "trainer.device", "trainer.critic_warmup", "trainer.on_nonfinite"]),
    // The order in which gradients are added up decides their last digits.
    (Effect, &["trainer.gradient_slices", "trainer.balance_batch"]),
    (Free("the patience of processes with each other"), &["actor_rollout_ref.nccl_timeout", "trainer.nccl_timeout"]),
    (Refused(CheckpointPart::Data), &["trainer.seed"]),
    // These decide which rows there are, and in what order.
    (
        Refused(CheckpointPart::Data),
        &["data.train_files", "data.train_max_samples", "data.train_batch_size", "data.shuffle", "data.seed"],
    ),
    (Refused(CheckpointPart::Data), &["data.filter_overlong_prompts", "data.max_prompt_length", "data.on_malformed_row"]),
    (Refused(CheckpointPart::Data), &["data.train_weights", "data.packing", "data.packing_length"]),
    // The position in the data counts rows, so the number of rows drawn at once may change.
    (Effect, &["data.gen_batch_size"]),
    (CONTENT, &["data.val_files", "data.val_max_samples", "data.validation_shuffle"]),
    (MEMORY, &["data.val_batch_size", "data.micro_batch_size_per_gpu", "data.use_dynamic_bsz", "data.max_token_len_per_gpu"]),
    (Validation, &["data.max_response_length"]),
    (Effect, &["data.prompt_key", "data.reward_fn_key", "data.truncation", "data.apply_chat_template_kwargs.**"]),
    (Effect, &["data.apply_chat_template", "data.input_template"]),
    // If it is unset, a resumed run uses the date of its checkpoint.
    (Effect, &["data.chat_template_date"]),
    (Effect, &["data.messages_key", "data.tools_key", "data.enable_thinking_key", "data.response_key"]),
    (Effect, &["data.prompt_dict_keys", "data.response_dict_keys", "data.max_length"]),
    (
        Effect,
        &[
            "data.chosen_key",
            "data.rejected_key",
            "data.reference_key",
            "data.chat_template_kwargs_key",
            "data.completion_key",
            "data.label_key",
        ],
    ),
    // The loss of a stage is also measured by its validation.
    (
        Validation,
        &["ref.model.path", "algorithm.loss_type", "algorithm.loss_weights", "algorithm.beta", "algorithm.label_smoothing"],
    ),
    (
        Validation,
        &["algorithm.f_divergence_type", "algorithm.f_alpha_divergence_coef", "algorithm.ld_alpha", "algorithm.use_weighting"],
    ),
    (
        Validation,
        &[
            "algorithm.nll_loss_coef",
            "algorithm.discopop_tau",
            "algorithm.simpo_gamma",
            "algorithm.cpo_alpha",
            "algorithm.alpha",
            "algorithm.tpo_alpha",
            "algorithm.tpo_l_gamma",
        ],
    ),
    (Validation, &["algorithm.desirable_weight", "algorithm.undesirable_weight"]),
    (Free("the same numbers, kept or computed again"), &["ref.precompute_log_prob", "ref.log_prob_path"]),
    (Effect, &["data.margin_key", "data.completions_key"]),
    (Effect, &["data.labels_key", "data.step_separator", "data.train_on_last_step_only", "data.input_key"]),
    // These decide which head the model has; a head comes from the checkpoint.
    (Refused(CheckpointPart::Policy), &["data.placeholder_token", "algorithm.init_head"]),
    (Validation, &["algorithm.center_rewards_coefficient", "algorithm.reward_tokens"]),
    (Effect, &["data.text_key"]),
    (Effect, &["data.loss_mask", "data.loss_roles", "data.assistant_mask"]),
    (Refused(CheckpointPart::Policy), &["data.tokenizer", "model.tokenizer_path"]),
    (Effect, &["model.custom_chat_template"]),
    // `init` is refused too: weights come from the checkpoint, so another value would be a no-op or give another reference.
    (
        Refused(CheckpointPart::Policy),
        &[
            "model.path",
            "model.init",
            "model.override_config.**",
            "model.lora_*",
            "model.*_modules",
            "model.load_in_4bit",
            "model.bnb_4bit_*",
        ],
    ),
    (
        Refused(CheckpointPart::Policy),
        &["actor_rollout_ref.model.path", "actor_rollout_ref.model.init", "actor_rollout_ref.model.override_config.**"],
    ),
    (
        Refused(CheckpointPart::Policy),
        &[
            "actor_rollout_ref.model.lora_*",
            "actor_rollout_ref.model.*_modules",
            "actor_rollout_ref.model.load_in_4bit",
            "actor_rollout_ref.model.bnb_4bit_*",
        ],
    ),
    (
        Refused(CheckpointPart::Critic),
        &[
            "critic.model.path",
            "critic.model.init",
            "critic.model.override_config.**",
            "critic.model.lora_*",
            "critic.model.*_modules",
            "critic.model.load_in_4bit",
            "critic.model.bnb_4bit_*",
        ],
    ),
    (Effect, &["model.dtype", "actor_rollout_ref.model.dtype", "critic.model.dtype"]),
    (MEMORY, &["**.enable_gradient_checkpointing"]),
    (Effect, &["**.optim.lr", "**.optim.lr_warmup_steps", "**.optim.lr_warmup_steps_ratio", "**.optim.min_lr_ratio"]),
    (
        Effect,
        &[
            "**.optim.num_cycles",
            "**.optim.lr_scheduler_type",
            "**.optim.total_training_steps",
            "**.optim.weight_decay",
            "**.optim.no_decay_name_list",
        ],
    ),
    (OPTIMIZER, &["**.optim.optimizer"]),
    (Effect, &["**.optim.override_optimizer_config.**"]),
    (Effect, &["**.optim.min_lr", "**.optim.lr_warmup_init", "**.optim.power", "**.optim.timescale", "**.optim.stable_ratio"]),
    (Effect, &["**.optim.lr_wsd_decay_*", "**.optim.zero_indexed_step"]),
    (Effect, &["**.optim.betas", "**.optim.eps", "optim.clip_grad"]),
    (MEMORY, &["actor_rollout_ref.**.*micro_batch_size_per_gpu", "actor_rollout_ref.**.*use_dynamic_bsz"]),
    (MEMORY, &["actor_rollout_ref.**.*max_token_len_per_gpu", "critic.*micro_batch_size_per_gpu", "critic.use_dynamic_bsz"]),
    (MEMORY, &["critic.*max_token_len_per_gpu"]),
    (Effect, &["actor_rollout_ref.actor.ppo_mini_batch_size", "actor_rollout_ref.actor.ppo_epochs"]),
    (Effect, &["actor_rollout_ref.actor.shuffle", "actor_rollout_ref.actor.data_loader_seed"]),
    (Effect, &["actor_rollout_ref.actor.grad_clip", "actor_rollout_ref.actor.clip_ratio"]),
    (Effect, &["actor_rollout_ref.actor.clip_ratio_low", "actor_rollout_ref.actor.clip_ratio_high"]),
    (Effect, &["actor_rollout_ref.actor.clip_ratio_c", "actor_rollout_ref.actor.loss_agg_mode"]),
    (Effect, &["actor_rollout_ref.actor.loss_scale_factor", "actor_rollout_ref.actor.entropy_coeff"]),
    (Effect, &["actor_rollout_ref.actor.tau_pos", "actor_rollout_ref.actor.tau_neg", "actor_rollout_ref.actor.use_kl_loss"]),
    (Effect, &["actor_rollout_ref.actor.use_adaptive_entropy", "actor_rollout_ref.actor.entropy_target"]),
    (Effect, &["actor_rollout_ref.actor.entropy_coef_*", "actor_rollout_ref.actor.use_bias_correction_kl"]),
    (Effect, &["actor_rollout_ref.actor.kl_loss_coef", "actor_rollout_ref.actor.kl_loss_type"]),
    (Effect, &["actor_rollout_ref.actor.calculate_sum_pi_squared"]),
    (Effect, &["actor_rollout_ref.actor.policy_loss.*"]),
    (Effect, &["actor_rollout_ref.ref.sync_ref_model", "actor_rollout_ref.ref.ref_model_mixup_alpha"]),
    (Effect, &["actor_rollout_ref.ref.ref_model_sync_steps", "actor_rollout_ref.ref.model.path"]),
    (Free("there is one engine"), &["actor_rollout_ref.rollout.name"]),
    (Free("they are data.max_prompt_length and data.max_response_length"), &["actor_rollout_ref.rollout.prompt_length"]),
    (Free("they are data.max_prompt_length and data.max_response_length"), &["actor_rollout_ref.rollout.response_length"]),
    (MEMORY, &["actor_rollout_ref.rollout.max_num_seqs", "actor_rollout_ref.rollout.max_num_batched_tokens"]),
    (Free("steps that are launched draw what recorded ones draw"), &["actor_rollout_ref.rollout.enforce_eager"]),
    (Effect, &["actor_rollout_ref.rollout.n", "actor_rollout_ref.rollout.do_sample", "actor_rollout_ref.rollout.temperature"]),
    (Effect, &["actor_rollout_ref.rollout.top_k", "actor_rollout_ref.rollout.top_p"]),
    (Effect, &["actor_rollout_ref.rollout.calculate_log_probs", "actor_rollout_ref.rollout.logprobs_mode"]),
    // Validation samples with these and with val_kwargs.
    (Validation, &["actor_rollout_ref.rollout.min_p", "actor_rollout_ref.rollout.*_penalty"]),
    (
        Validation,
        &[
            "actor_rollout_ref.rollout.logit_bias.**",
            "actor_rollout_ref.rollout.bad_words",
            "actor_rollout_ref.rollout.allowed_token_ids",
        ],
    ),
    (
        Validation,
        &["actor_rollout_ref.rollout.ignore_eos", "actor_rollout_ref.rollout.stop", "actor_rollout_ref.rollout.stop_token_ids"],
    ),
    (Validation, &["actor_rollout_ref.rollout.min_tokens", "actor_rollout_ref.rollout.max_model_len"]),
    (Validation, &["actor_rollout_ref.rollout.val_kwargs.**"]),
    // Validation has the same conversations.
    (Validation, &["actor_rollout_ref.rollout.multi_turn.*", "actor_rollout_ref.rollout.agent.**"]),
    (Effect, &["critic.enable", "critic.ppo_mini_batch_size", "critic.ppo_epochs", "critic.shuffle", "critic.data_loader_seed"]),
    (Effect, &["critic.grad_clip", "critic.cliprange_value", "critic.loss_agg_mode", "critic.loss_scale_factor"]),
    (Validation, &["reward_model.enable", "reward_model.model.*", "reward_model.max_length", "reward_model.reward_manager"]),
    (Validation, &["reward_model.step_*", "reward_model.placeholder_token", "reward_model.reward_tokens"]),
    (Validation, &["reward_model.reward_kwargs.**", "reward_model.remote_url", "reward_model.reward_functions"]),
    (Validation, &["reward_model.reward_weights", "custom_reward_function.**"]),
    (MEMORY, &["reward_model.micro_batch_size_per_gpu", "reward_model.use_dynamic_bsz"]),
    (MEMORY, &["reward_model.forward_max_token_len_per_gpu"]),
    (Validation, &["reward.timeout", "reward.on_error", "reward.error_value", "reward.function_kwargs.**", "reward.cpu_limit"]),
    (Validation, &["reward.memory_limit_mb", "reward.sandbox_fusion.memory_limit_mb"]),
    (Effect, &["reward.num_workers", "reward.start_timeout", "reward.python", "reward.pass_env", "reward.remote_retries"]),
    (Effect, &["reward.remote_token_env", "reward.sandbox_fusion.url", "reward.sandbox_fusion.max_concurrent"]),
    (Effect, &["algorithm.gamma", "algorithm.lam", "algorithm.adv_estimator", "algorithm.norm_adv_by_std_in_grpo"]),
    (Effect, &["algorithm.custom_adv_estimator.path", "algorithm.post_processing.path", "algorithm.post_processing.name"]),
    // With turn rewards in the score, a score changes too.
    (Validation, &["algorithm.turn_rewards"]),
    (Effect, &["algorithm.scale_rewards", "algorithm.gdpo_reward_keys", "algorithm.gdpo_reward_weights"]),
    (Validation, &["algorithm.missing_eos_penalty", "algorithm.stop_properly_penalty_coef"]),
    (Effect, &["algorithm.mask_truncated_completions", "algorithm.normalize_reward", "algorithm.reward_clip_range"]),
    (Effect, &["algorithm.baselined_clip_range", "algorithm.length_penalty.*", "algorithm.rae_decay"]),
    (Effect, &["algorithm.a2po.filter_all_incorrect"]),
    // The values of prompts are in the checkpoint.
    (Refused(CheckpointPart::Data), &["algorithm.a2po.num_value_samples", "algorithm.a2po.beta1"]),
    (
        Effect,
        &["algorithm.whiten_rewards", "algorithm.normalize_advantages", "algorithm.use_kl_in_reward", "algorithm.kl_penalty"],
    ),
    (Effect, &["algorithm.kl_ctrl.type", "algorithm.kl_ctrl.horizon", "algorithm.kl_ctrl.target_kl", KL_COEF]),
    (
        Effect,
        &["algorithm.filter_groups.enable", "algorithm.filter_groups.metric", "algorithm.filter_groups.max_num_gen_batches"],
    ),
    (
        Effect,
        &[
            "algorithm.filter_groups.mean_range",
            "algorithm.filter_groups.tolerance",
            "algorithm.use_pf_ppo",
            "algorithm.pf_ppo.*",
            "algorithm.echo.*",
        ],
    ),
    (Effect, &["algorithm.rollout_correction.rollout_*", "algorithm.rollout_correction.bypass_mode"]),
    (Effect, &["algorithm.rollout_correction.loss_type", "algorithm.rollout_correction.count_rejected"]),
    (Effect, &["distillation.**"]),
    (Validation, &["teacher.*", "algorithm.temperature", "algorithm.kd_coef"]),
    (Validation, &["algorithm.log_prob_min_clamp", "algorithm.loss_top_k", "algorithm.loss_add_tail"]),
    (Validation, &["algorithm.use_extended_uld", "algorithm.uld_*"]),
];

/// Setting of the initial KL coefficient.
pub const KL_COEF: &str = "algorithm.kl_ctrl.kl_coef";

/// Returns true if a change of this key gives another run, with other numbers.
pub fn changes_the_run(key: &str) -> bool {
    match effect(key) {
        None => false,
        Some(Free(_)) => effect(key) == Some(OPTIMIZER),
        Some(_) => true,
    }
}

/// Returns the effect of a change of this key; `None` for a key that is no longer a setting.
pub(super) fn effect(key: &str) -> Option<ChangeEffect> {
    CHANGES.iter().find(|(_, patterns)| patterns.iter().any(|pattern| fits_key(pattern, key))).map(|(effect, _)| *effect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::kinds::KINDS;

    fn effects(key: &str) -> Vec<ChangeEffect> {
        let lines = CHANGES.iter().flat_map(|(effect, patterns)| patterns.iter().map(move |pattern| (effect, pattern)));
        lines.filter(|(_, pattern)| fits_key(pattern, key)).map(|(effect, _)| *effect).collect()
    }

    /// A new setting needs an entry with the effect of its change on a resumed run.
    #[test]
    fn every_key_has_one_effect_and_every_pattern_a_key() {
        let keys =
            KINDS.iter().filter(|known| known.file.ends_with("_trainer")).map(|known| known.defaults().unwrap().settings());
        let keys = keys.collect::<Vec<_>>().concat();
        let undecided: Vec<_> =
            keys.iter().map(|(key, ..)| key).filter(|key| effects(key).len() != 1).map(|key| (key, effects(key))).collect();
        assert!(undecided.is_empty(), "say in CHANGES, once, what a change of these keys means: {undecided:?}");
        for pattern in CHANGES.iter().flat_map(|(_, patterns)| *patterns) {
            assert!(keys.iter().any(|(key, ..)| fits_key(pattern, key)), "{pattern} fits no setting");
        }
    }
}
