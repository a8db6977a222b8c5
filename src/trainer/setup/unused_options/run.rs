//! Settings of the frame of a run of reinforcement learning that have no effect with the other settings.

use anyhow::{Context, Result};

use crate::job::sharding_plan::ShardingPlan;
use crate::job::unused_options::{UnusedOption, table};
use crate::job::unused_schedule::{of_optimizer, of_schedule, optimizer_keys, schedule_keys};
use crate::trainer::algorithms;
use crate::trainer::learning::teacher;
use crate::trainer::setup::inputs::TrainerInputs;
use burnish_algorithm::policy_loss::CLIPPING;
use burnish_config::PpoConfig;
use burnish_config::schema::TrainerResumeMode;

/// Returns the settings without an effect among the settings of schedules, validation, checkpoints, the order of rows, and the
/// cutting of passes.
///
/// # Errors
/// See [`of_schedule`] and `algorithms::corrections`.
pub(crate) fn of_run(config: &PpoConfig, inputs: &TrainerInputs, sharding: &ShardingPlan) -> Result<Vec<UnusedOption>> {
    let (data, trainer, parts) = (&config.data, &config.trainer, &config.actor_rollout_ref);
    let (actor, rollout, reference, critic) = (&parts.actor, &parts.rollout, &parts.reference, &config.critic);
    let validates = config.validates();
    let no_rows = "there is no validation, data.val_files is null";
    let without_rows = data.val_files.is_none();
    let unvalidated = match without_rows {
        true => (true, no_rows),
        false => (!validates, "nothing is validated (trainer.test_freq, trainer.val_before_train)"),
    };
    let every_row = (data.val_max_samples <= 0, "without data.val_max_samples every row is used");
    let draws = validates && data.validation_shuffle && !every_row.0;
    let in_order = (!data.shuffle && !draws, "nothing is shuffled");
    let afresh = (trainer.resume_mode == TrainerResumeMode::Disable, "trainer.resume_mode=disable loads no checkpoint");
    let counted = (trainer.total_training_steps.is_some(), "trainer.total_training_steps is the length of the run");
    let rarely = reference.sync_ref_model && reference.ref_model_sync_steps > inputs.total_steps;
    let never_synced = (rarely, "the run has fewer steps than ref_model_sync_steps");

    let corrections = algorithms::corrections(config)?;
    let once = inputs.plan.on_policy() && !corrections.bypass && !algorithms::is_to_rollout(config);
    let once = (once, "with one update per step the policy is the policy that generated, and every ratio is 1");
    let both = actor.clip_ratio_low.is_some() && actor.clip_ratio_high.is_some();
    let both = (both, "clip_ratio_low and clip_ratio_high replace it");

    let recomputes = algorithms::needs_old_log_probs(config, &inputs.plan, &corrections);
    let no_pass = (!recomputes, "no pass recomputes log-probabilities");
    let no_pass_of_others = !config.has_reference() && !config.distillation.passes_before();
    let no_reference =
        (no_pass_of_others, "neither the policy loss nor a KL term needs a reference (use_kl_loss, use_kl_in_reward)");
    let by_tokens = |dynamic: bool| (dynamic, "passes are cut by tokens (use_dynamic_bsz)");
    let by_sequences = |dynamic: bool| (!dynamic, "passes are cut by sequences (use_dynamic_bsz is false)");

    let mut options = table(&[
        (
            unvalidated,
            &[
                "data.val_max_samples",
                "data.val_batch_size",
                "data.validation_shuffle",
                "actor_rollout_ref.rollout.val_kwargs.top_k",
                "actor_rollout_ref.rollout.val_kwargs.top_p",
                "actor_rollout_ref.rollout.val_kwargs.temperature",
                "actor_rollout_ref.rollout.val_kwargs.n",
                "actor_rollout_ref.rollout.val_kwargs.do_sample",
                "trainer.log_val_generations",
                "trainer.validation_data_dir",
            ],
        ),
        ((without_rows && !trainer.test_freq.is_never(), no_rows), &["trainer.test_freq"]),
        ((without_rows, no_rows), &["trainer.eval_delay"]),
        (
            (!trainer.test_freq.is_due_before(trainer.eval_delay), "trainer.test_freq chooses no step before it"),
            &["trainer.eval_delay"],
        ),
        (every_row, &["data.validation_shuffle"]),
        (in_order, &["data.seed"]),
        (afresh, &["actor_rollout_ref.actor.checkpoint.load_contents", "critic.checkpoint.load_contents"]),
        (counted, &["trainer.total_epochs"]),
        (never_synced, &["actor_rollout_ref.ref.sync_ref_model", "actor_rollout_ref.ref.ref_model_mixup_alpha"]),
        (both, &["actor_rollout_ref.actor.clip_ratio"]),
        ((!actor.shuffle, "actor_rollout_ref.actor.shuffle is false"), &["actor_rollout_ref.actor.data_loader_seed"]),
        ((!critic.shuffle, "critic.shuffle is false"), &["critic.data_loader_seed"]),
        (by_tokens(actor.use_dynamic_bsz), &["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"]),
        (by_sequences(actor.use_dynamic_bsz), &["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"]),
        (
            no_pass,
            &[
                "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
                "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz",
                "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
            ],
        ),
        (by_tokens(rollout.log_prob_use_dynamic_bsz), &["actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"]),
        (by_sequences(rollout.log_prob_use_dynamic_bsz), &["actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu"]),
        (
            no_reference,
            &[
                "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
                "actor_rollout_ref.ref.log_prob_use_dynamic_bsz",
                "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu",
            ],
        ),
        (by_tokens(reference.log_prob_use_dynamic_bsz), &["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"]),
        (by_sequences(reference.log_prob_use_dynamic_bsz), &["actor_rollout_ref.ref.log_prob_max_token_len_per_gpu"]),
        (by_tokens(critic.use_dynamic_bsz), &["critic.ppo_micro_batch_size_per_gpu", "critic.forward_micro_batch_size_per_gpu"]),
        (by_sequences(critic.use_dynamic_bsz), &["critic.ppo_max_token_len_per_gpu", "critic.forward_max_token_len_per_gpu"]),
        (once, CLIPPING),
        ((once.0 && actor.kl_loss_type.ends_with('+'), once.1), &["actor_rollout_ref.actor.use_bias_correction_kl"]),
    ]);
    options.extend(sharding.unused_options("actor_rollout_ref.nccl_timeout"));
    let context = "lr_scheduler_type";
    options.extend(of_schedule(schedule_keys!("actor_rollout_ref.actor.optim"), &actor.optim).context(context)?);
    options.extend(of_schedule(schedule_keys!("critic.optim"), &critic.optim).context(context)?);
    options.extend(teacher::unused_options(&config.distillation, once));
    options.extend(of_optimizer(optimizer_keys!("actor_rollout_ref.actor.optim"), &actor.optim));
    options.extend(of_optimizer(optimizer_keys!("critic.optim"), &critic.optim));
    Ok(options)
}
