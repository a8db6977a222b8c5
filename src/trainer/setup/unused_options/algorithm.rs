//! Settings of the algorithm of reinforcement learning that have no effect with the other settings.

use crate::job::unused_options::{UnusedOption, table};
use crate::trainer::sampling::reward_model::judges_steps;
use burnish_algorithm::policy_loss;
use burnish_config::schema::{BypassLossType, KlControllerKind, NumberOrText, PpoConfig, RewardManager};

/// Returns the settings that need another setting to be on.
pub(crate) fn of_algorithm(config: &PpoConfig) -> Vec<UnusedOption> {
    let (actor, algorithm, rewards) = (&config.actor_rollout_ref.actor, &config.algorithm, &config.reward_model);
    let rollout = &config.actor_rollout_ref.rollout;
    let unprocessed = (algorithm.post_processing.path.is_none(), "algorithm.post_processing.path is null");
    let greedy = (!rollout.do_sample, "rollout.do_sample is false");
    let no_stops = rollout.stop.is_empty() && rollout.stop_token_ids.is_empty();
    let never_stops = (rollout.ignore_eos && no_stops, "rollout.ignore_eos is true, and nothing else stops a response");
    let greedy_validation = (rollout.val_kwargs.temperature == 0.0, "rollout.val_kwargs.temperature is 0");
    let all_greedy = (!rollout.do_sample && greedy_validation.0, "nothing samples");
    let penalties = [rollout.repetition_penalty - 1.0, rollout.presence_penalty, rollout.frequency_penalty];
    let rules = rollout.logit_bias.is_some() || rollout.bad_words.is_some() || rollout.allowed_token_ids.is_some();
    let unfiltered = rollout.do_sample && rollout.temperature == 1.0 && penalties == [0.0; 3] && rollout.top_k <= 0;
    let unfiltered = unfiltered && rollout.top_p == 1.0 && rollout.min_p == 0.0 && rollout.min_tokens == 0 && !rules;
    let unfiltered = (unfiltered, "tokens are drawn from the unchanged probabilities of the model");
    let no_loss_kl = (!actor.use_kl_loss, "actor.use_kl_loss is false");
    let constant_entropy = (!actor.use_adaptive_entropy, "actor.use_adaptive_entropy is false");
    let by_range = algorithm.filter_groups.enable && algorithm.filter_groups.mean_range.is_some();
    let by_range = (by_range, "algorithm.filter_groups.mean_range replaces it");
    let no_reward_kl = (!algorithm.use_kl_in_reward, "algorithm.use_kl_in_reward is false");
    let fixed = (algorithm.kl_ctrl.kind == KlControllerKind::Fixed, "algorithm.kl_ctrl.type is fixed");
    let no_reference =
        (!config.has_reference(), "neither the policy loss nor a KL term needs a reference (use_kl_loss, use_kl_in_reward)");
    let no_sync = (!config.actor_rollout_ref.reference.sync_ref_model, "sync_ref_model is false");
    let no_filter = (!algorithm.filter_groups.enable, "algorithm.filter_groups.enable is false");
    let no_echo = (!algorithm.echo.enable, "algorithm.echo.enable is false");
    let one_turn = (!rollout.conversations().has_any(), "responses have one turn, and no environment writes");
    let no_pf_ppo = (!algorithm.use_pf_ppo, "algorithm.use_pf_ppo is false");
    let no_buffer = (
        rewards.reward_manager != Some(RewardManager::Dapo) || !rewards.reward_kwargs.overlong_buffer_cfg.enable,
        "overlong_buffer_cfg.enable is false",
    );
    let plain_dapo = rewards.reward_manager == Some(RewardManager::Dapo) && no_buffer.0;
    let plain_dapo = (plain_dapo, "without overlong_buffer_cfg.enable dapo scores as naive does");
    let by_sequences = (rewards.enable && !rewards.use_dynamic_bsz, "reward_model.use_dynamic_bsz is false");
    let trainer = &config.trainer;
    let never_shown = (trainer.log_completions == 0, "trainer.log_completions is 0");
    let no_times = (trainer.num_sample_generations == 0, "trainer.num_sample_generations is 0");
    let no_best = (config.trainer.metric_for_best_model.is_none(), "trainer.metric_for_best_model is null");
    let by_tokens = (rewards.enable && rewards.use_dynamic_bsz, "reward_model.use_dynamic_bsz is true");
    let no_model = (!rewards.enable, "reward_model.enable is false");
    let no_placeholder = (rewards.enable && rewards.placeholder_token.is_none(), "reward_model.placeholder_token is null");
    let whole_texts = (rewards.enable && !judges_steps(config), "the reward model scores whole texts");
    let correction = algorithm.rollout_correction.as_ref();
    let no_weights = (correction.is_none_or(|c| c.rollout_is.is_none()), "rollout_is is null");
    let no_rejection = (correction.is_none_or(|c| c.rollout_rs.is_none()), "rollout_rs is null");
    let rejects = correction.is_some_and(|c| c.rollout_rs.is_some() || c.rollout_token_veto_threshold.is_some());
    let rejects_nothing = match rejects {
        true => (correction.is_some_and(|c| c.bypass_mode), "in bypass_mode the mean is always over all tokens"),
        false => (true, "nothing is rejected (rollout_rs, rollout_token_veto_threshold)"),
    };
    let bypass = |of: BypassLossType| correction.is_some_and(|c| c.bypass_mode && c.loss_type == of);
    let clips = (bypass(BypassLossType::PpoClip), "the loss ppo_clip clips the ratio; weights are reported and not used");
    let reinforces = (bypass(BypassLossType::Reinforce), "the loss reinforce clips nothing");
    let delta = (actor.policy_loss.delta.is_some(), "policy_loss.delta replaces it");
    let is_range = |threshold: &NumberOrText| threshold.to_string().contains('_');
    let ranges = correction.and_then(|c| c.rollout_rs_threshold.as_ref()).is_some_and(is_range);
    let ranges = (ranges, "rollout_rs_threshold has the lower bound");
    let no_bypass = (correction.is_none_or(|c| !c.bypass_mode), "bypass_mode is false");
    let own_mode = policy_loss::find(&actor.policy_loss.loss_mode).is_some_and(|loss| loss.aggregation.is_some())
        && !actor.use_kl_loss
        && actor.entropy_coeff == 0.0
        && !config.distillation.enabled;
    table(&[
        (unprocessed, &["algorithm.post_processing.name"]),
        (greedy, &["actor_rollout_ref.rollout.top_k", "actor_rollout_ref.rollout.top_p"]),
        (all_greedy, &["actor_rollout_ref.rollout.min_p"]),
        (greedy_validation, &["actor_rollout_ref.rollout.val_kwargs.top_k", "actor_rollout_ref.rollout.val_kwargs.top_p"]),
        (unfiltered, &["actor_rollout_ref.rollout.logprobs_mode"]),
        (never_stops, &["actor_rollout_ref.rollout.min_tokens"]),
        (
            no_loss_kl,
            &[
                "actor_rollout_ref.actor.kl_loss_coef",
                "actor_rollout_ref.actor.kl_loss_type",
                "actor_rollout_ref.actor.use_bias_correction_kl",
            ],
        ),
        (
            constant_entropy,
            &[
                "actor_rollout_ref.actor.entropy_target",
                "actor_rollout_ref.actor.entropy_coef_delta",
                "actor_rollout_ref.actor.entropy_coef_min",
                "actor_rollout_ref.actor.entropy_coef_max",
            ],
        ),
        (no_reward_kl, &["algorithm.kl_penalty", "algorithm.kl_ctrl.type", "algorithm.kl_ctrl.kl_coef"]),
        (no_reference, &["actor_rollout_ref.ref.sync_ref_model", "actor_rollout_ref.ref.model.path"]),
        (no_sync, &["actor_rollout_ref.ref.ref_model_mixup_alpha", "actor_rollout_ref.ref.ref_model_sync_steps"]),
        (fixed, &["algorithm.kl_ctrl.horizon", "algorithm.kl_ctrl.target_kl"]),
        (
            no_filter,
            &[
                "algorithm.filter_groups.metric",
                "algorithm.filter_groups.max_num_gen_batches",
                "algorithm.filter_groups.mean_range",
                "algorithm.filter_groups.tolerance",
                "data.gen_batch_size",
            ],
        ),
        (by_range, &["algorithm.filter_groups.tolerance"]),
        (no_echo, &["algorithm.echo.alpha", "algorithm.echo.roles"]),
        (one_turn, &["algorithm.echo.enable", "algorithm.echo.alpha", "algorithm.echo.roles"]),
        (no_pf_ppo, &["algorithm.pf_ppo.reweight_method", "algorithm.pf_ppo.weight_pow"]),
        (plain_dapo, &["reward_model.reward_manager"]),
        (
            no_buffer,
            &[
                "reward_model.reward_kwargs.max_resp_len",
                "reward_model.reward_kwargs.overlong_buffer_cfg.len",
                "reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor",
                "reward_model.reward_kwargs.overlong_buffer_cfg.log",
            ],
        ),
        (
            no_model,
            &[
                "reward_model.model.input_tokenizer",
                "reward_model.model.path",
                "reward_model.model.init",
                "reward_model.model.dtype",
                "reward_model.micro_batch_size_per_gpu",
                "reward_model.use_dynamic_bsz",
                "reward_model.forward_max_token_len_per_gpu",
                "reward_model.max_length",
                "reward_model.step_score",
                "reward_model.step_separator",
                "reward_model.placeholder_token",
                "reward_model.reward_tokens",
            ],
        ),
        (by_tokens, &["reward_model.micro_batch_size_per_gpu"]),
        (by_sequences, &["reward_model.forward_max_token_len_per_gpu"]),
        (no_best, &["trainer.greater_is_better"]),
        (never_shown, &["trainer.num_sample_generations"]),
        (no_times, &["trainer.log_completions"]),
        (whole_texts, &["reward_model.step_score", "reward_model.step_separator"]),
        (no_placeholder, &["reward_model.reward_tokens"]),
        (
            no_weights,
            &[
                "algorithm.rollout_correction.rollout_is_threshold",
                "algorithm.rollout_correction.rollout_is_threshold_lower",
                "algorithm.rollout_correction.rollout_is_batch_normalize",
            ],
        ),
        (
            no_rejection,
            &["algorithm.rollout_correction.rollout_rs_threshold", "algorithm.rollout_correction.rollout_rs_threshold_lower"],
        ),
        (no_bypass, &["algorithm.rollout_correction.loss_type"]),
        (rejects_nothing, &["algorithm.rollout_correction.count_rejected"]),
        (clips, &["algorithm.rollout_correction.rollout_is"]),
        (delta, &["actor_rollout_ref.actor.clip_ratio_c"]),
        (ranges, &["algorithm.rollout_correction.rollout_rs_threshold_lower"]),
        ((own_mode, "the policy loss has a fixed aggregation"), &["actor_rollout_ref.actor.loss_agg_mode"]),
        (
            (actor.loss_agg_mode != "seq-mean-token-sum-norm", "loss_agg_mode is not seq-mean-token-sum-norm"),
            &["actor_rollout_ref.actor.loss_scale_factor"],
        ),
        (
            (
                config.has_critic() && config.critic.loss_agg_mode != "seq-mean-token-sum-norm",
                "critic.loss_agg_mode is not seq-mean-token-sum-norm",
            ),
            &["critic.loss_scale_factor"],
        ),
        (reinforces, policy_loss::CLIPPING),
    ])
}
