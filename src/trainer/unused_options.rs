//! Options of reinforcement learning that have no effect beside the others: those of its algorithm.

use anyhow::Result;

use super::inputs::Inputs;
use super::sampling::reward_model::judges_steps;
use super::unused_training_options::of_run;
use super::{algorithms, choices, teacher};
use crate::job::agents::{Agents, of_conversations};
use crate::job::lora_settings;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::unused_options::{UnusedOption, of_rewards, warn_of};
use burnish_algorithm::policy_loss;
use burnish_config::schema::{
    ADV_ESTIMATOR, BypassLossType, KlControllerKind, LOSS_MODE, NumberOrText, PpoConfig, RewardManager,
};
use burnish_config::{Tree, Value};
use burnish_registry::{Choice, Need};

/// Says which settings of a run of reinforcement learning have no effect, and returns them.
pub fn warn(tree: &Tree, config: &PpoConfig, inputs: &Inputs, sharding: &ShardingPlan) -> Result<Vec<String>> {
    let choices = choices();
    let loss = algorithms::policy_loss(config)?.name;
    let estimator = config.algorithm.adv_estimator.as_str();
    let loggers: Vec<&str> = config.trainer.logger.iter().map(String::as_str).collect();
    let of_loggers: Vec<(&str, String)> = unread(&choices, "trainer.logger", &loggers)
        .into_iter()
        .map(|(key, readers)| (key, format!("trainer.logger has no {}", readers.join(" or "))))
        .collect();
    let named = |key, name, why| unread(&choices, key, &[name]).into_iter().map(move |(key, _)| (key, why));
    let of_losses = named(LOSS_MODE, loss, "the policy loss does not read it");
    let reads_advantages = config.reads_advantages();
    // A file of the user gets the whole section as its `config`.
    let is_own = config.algorithm.custom_adv_estimator.path.is_some();
    let (chosen, why) = match reads_advantages {
        true => (estimator, "the advantage estimator does not read it"),
        false => ("", teacher::ALONE),
    };
    let of_estimators = named(ADV_ESTIMATOR, chosen, why);
    let of_estimators = of_estimators.filter(|(key, _)| !is_own || !reads_advantages || Need::Components.reads().contains(key));
    let mut processes = inputs.agents.as_ref().map(Agents::processes).unwrap_or_default();
    processes.python |= is_own || config.algorithm.post_processing.path.is_some();
    let model = lora_settings::unused_options(&config.actor_rollout_ref.model.lora());
    let critic = config.has_critic().then(|| lora_settings::unused_options(&config.critic.model.lora()));
    let of_lora = model.into_iter().chain(critic.into_iter().flatten());
    let options: Vec<UnusedOption> = teacher::unread(config)
        .into_iter()
        .chain(others(config))
        .chain(of_run(config, inputs, sharding)?)
        .chain(of_conversations(&config.actor_rollout_ref.rollout.conversations()))
        .chain(of_lora)
        .chain(of_rewards(&config.rewards(), &inputs.rewards, processes))
        .filter(|(unused, ..)| *unused)
        .collect();
    let of_critic: Vec<String> = match config.has_critic() {
        true => Vec::new(),
        false => {
            let is_setting =
                |key: &String| key.ends_with(".override_optimizer_config") || !matches!(tree.value(key), Some(Value::Map(_)));
            let is_mine = |key: &String| key.starts_with("critic.") && is_setting(key);
            tree.keys().into_iter().filter(is_mine).collect()
        }
    };
    let why = match reads_advantages {
        true => format!("algorithm.adv_estimator={estimator} needs no critic"),
        false => teacher::ALONE.to_owned(),
    };
    let of_critic = of_critic.iter().map(|key| (key.as_str(), why.as_str()));
    let unused: Vec<(&str, &str)> = of_critic
        .chain(of_losses)
        .chain(of_estimators)
        .chain(options.iter().map(|(_, key, reason)| (*key, *reason)))
        .chain(of_loggers.iter().map(|(key, reason)| (*key, reason.as_str())))
        .collect();
    warn_of::<PpoConfig>(tree, &unused)
}

/// The settings that some of the names a key may hold read and none of the chosen ones does, each with the names that read it.
fn unread<'a>(choices: &'a [Choice], key: &str, chosen: &[&str]) -> Vec<(&'static str, Vec<&'a str>)> {
    let of = || choices.iter().filter(|choice| choice.key == key);
    let mut settings: Vec<&'static str> = Vec::new();
    for setting in of().flat_map(|choice| &choice.reads) {
        if !settings.contains(setting) {
            settings.push(setting);
        }
    }
    let unread = |setting: &'static str| {
        let readers: Vec<&str> =
            of().filter(|choice| choice.reads.contains(&setting)).map(|choice| choice.name.as_ref()).collect();
        (!readers.iter().any(|reader| chosen.contains(reader))).then_some((setting, readers))
    };
    settings.into_iter().filter_map(unread).collect()
}

/// Settings that need another one to be on.
fn others(config: &PpoConfig) -> Vec<UnusedOption> {
    let (actor, algorithm, rewards) = (&config.actor_rollout_ref.actor, &config.algorithm, &config.reward_model);
    let rollout = &config.actor_rollout_ref.rollout;
    let unprocessed = (algorithm.post_processing.path.is_none(), "algorithm.post_processing.path is null");
    let greedy = (!rollout.do_sample, "rollout.do_sample is false");
    let no_stops = rollout.stop.is_empty() && rollout.stop_token_ids.is_empty();
    let never_stops = (rollout.ignore_eos && no_stops, "rollout.ignore_eos is true, and nothing else stops a response");
    let greedy_validation = (rollout.val_kwargs.temperature == 0.0, "rollout.val_kwargs.temperature is 0");
    let all_greedy = (!rollout.do_sample && greedy_validation.0, "nothing samples");
    let corrects = algorithms::corrections(config).is_ok_and(|asked| asked.correction.is_some());
    let unread = (!corrects && !rollout.calculate_log_probs, "neither rollout_correction nor calculate_log_probs reads it");
    let penalties = [rollout.repetition_penalty - 1.0, rollout.presence_penalty, rollout.frequency_penalty];
    let rules = rollout.logit_bias.is_some() || rollout.bad_words.is_some() || rollout.allowed_token_ids.is_some();
    let unfiltered = rollout.do_sample && rollout.temperature == 1.0 && penalties == [0.0; 3] && rollout.top_k <= 0;
    let unfiltered = unfiltered && rollout.top_p == 1.0 && rollout.min_p == 0.0 && rollout.min_tokens == 0 && !rules;
    let unfiltered = (unfiltered, "tokens are drawn by the probabilities of the model as they are");
    let no_loss_kl = (!actor.use_kl_loss, "actor.use_kl_loss is false");
    let no_reward_kl = (!algorithm.use_kl_in_reward, "algorithm.use_kl_in_reward is false");
    let fixed = (algorithm.kl_ctrl.kind == KlControllerKind::Fixed, "algorithm.kl_ctrl.type is fixed");
    let no_reference =
        (!config.has_reference(), "neither the policy loss nor a KL term needs a reference (use_kl_loss, use_kl_in_reward)");
    let no_sync = (!config.actor_rollout_ref.reference.sync_ref_model, "sync_ref_model is false");
    let no_filter = (!algorithm.filter_groups.enable, "algorithm.filter_groups.enable is false");
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
    let bypass = |of: BypassLossType| correction.is_some_and(|c| c.bypass_mode && c.loss_type == of);
    let clips = (bypass(BypassLossType::PpoClip), "the loss ppo_clip clips the ratio; weights are reported and not used");
    let reinforces = (bypass(BypassLossType::Reinforce), "the loss reinforce clips nothing");
    let delta = (actor.policy_loss.delta.is_some(), "policy_loss.delta stands in its place");
    let is_range = |threshold: &NumberOrText| threshold.to_string().contains('_');
    let ranges = correction.and_then(|c| c.rollout_rs_threshold.as_ref()).is_some_and(is_range);
    let ranges = (ranges, "rollout_rs_threshold has the lower bound");
    let no_bypass = (correction.is_none_or(|c| !c.bypass_mode), "bypass_mode is false");
    let own_mode = policy_loss::find(&actor.policy_loss.loss_mode).is_some_and(|loss| loss.aggregation.is_some())
        && !actor.use_kl_loss
        && actor.entropy_coeff == 0.0
        && !config.distillation.enabled;
    let rows: &[((bool, &'static str), &'static str)] = &[
        (unprocessed, "algorithm.post_processing.name"),
        (greedy, "actor_rollout_ref.rollout.top_k"),
        (greedy, "actor_rollout_ref.rollout.top_p"),
        (all_greedy, "actor_rollout_ref.rollout.min_p"),
        (greedy_validation, "actor_rollout_ref.rollout.val_kwargs.top_k"),
        (greedy_validation, "actor_rollout_ref.rollout.val_kwargs.top_p"),
        (unread, "actor_rollout_ref.rollout.logprobs_mode"),
        (unfiltered, "actor_rollout_ref.rollout.logprobs_mode"),
        (never_stops, "actor_rollout_ref.rollout.min_tokens"),
        (no_loss_kl, "actor_rollout_ref.actor.kl_loss_coef"),
        (no_loss_kl, "actor_rollout_ref.actor.kl_loss_type"),
        (no_reward_kl, "algorithm.kl_penalty"),
        (no_reward_kl, "algorithm.kl_ctrl.type"),
        (no_reward_kl, "algorithm.kl_ctrl.kl_coef"),
        (no_reference, "actor_rollout_ref.ref.sync_ref_model"),
        (no_reference, "actor_rollout_ref.ref.model.path"),
        (no_sync, "actor_rollout_ref.ref.ref_model_mixup_alpha"),
        (no_sync, "actor_rollout_ref.ref.ref_model_sync_steps"),
        (fixed, "algorithm.kl_ctrl.horizon"),
        (fixed, "algorithm.kl_ctrl.target_kl"),
        (no_filter, "algorithm.filter_groups.metric"),
        (no_filter, "algorithm.filter_groups.max_num_gen_batches"),
        (no_filter, "algorithm.filter_groups.mean_range"),
        (no_filter, "data.gen_batch_size"),
        (no_pf_ppo, "algorithm.pf_ppo.reweight_method"),
        (no_pf_ppo, "algorithm.pf_ppo.weight_pow"),
        (plain_dapo, "reward_model.reward_manager"),
        (no_buffer, "reward_model.reward_kwargs.max_resp_len"),
        (no_buffer, "reward_model.reward_kwargs.overlong_buffer_cfg.len"),
        (no_buffer, "reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor"),
        (no_buffer, "reward_model.reward_kwargs.overlong_buffer_cfg.log"),
        (no_model, "reward_model.model.input_tokenizer"),
        (no_model, "reward_model.model.path"),
        (no_model, "reward_model.model.init"),
        (no_model, "reward_model.model.dtype"),
        (no_model, "reward_model.micro_batch_size_per_gpu"),
        (by_tokens, "reward_model.micro_batch_size_per_gpu"),
        (no_model, "reward_model.use_dynamic_bsz"),
        (by_sequences, "reward_model.forward_max_token_len_per_gpu"),
        (no_best, "trainer.greater_is_better"),
        (never_shown, "trainer.num_sample_generations"),
        (no_times, "trainer.log_completions"),
        (no_model, "reward_model.forward_max_token_len_per_gpu"),
        (no_model, "reward_model.max_length"),
        (no_model, "reward_model.step_score"),
        (whole_texts, "reward_model.step_score"),
        (no_model, "reward_model.step_separator"),
        (whole_texts, "reward_model.step_separator"),
        (no_model, "reward_model.placeholder_token"),
        (no_model, "reward_model.reward_tokens"),
        (no_placeholder, "reward_model.reward_tokens"),
        (no_weights, "algorithm.rollout_correction.rollout_is_threshold"),
        (no_weights, "algorithm.rollout_correction.rollout_is_threshold_lower"),
        (no_weights, "algorithm.rollout_correction.rollout_is_batch_normalize"),
        (no_rejection, "algorithm.rollout_correction.rollout_rs_threshold"),
        (no_rejection, "algorithm.rollout_correction.rollout_rs_threshold_lower"),
        (no_bypass, "algorithm.rollout_correction.loss_type"),
        (clips, "algorithm.rollout_correction.rollout_is"),
        (delta, "actor_rollout_ref.actor.clip_ratio_c"),
        (ranges, "algorithm.rollout_correction.rollout_rs_threshold_lower"),
        ((own_mode, "the policy loss has an aggregation of its own"), "actor_rollout_ref.actor.loss_agg_mode"),
        (
            (actor.loss_agg_mode != "seq-mean-token-sum-norm", "loss_agg_mode is another than seq-mean-token-sum-norm"),
            "actor_rollout_ref.actor.loss_scale_factor",
        ),
        (
            (
                config.has_critic() && config.critic.loss_agg_mode != "seq-mean-token-sum-norm",
                "critic.loss_agg_mode is another than seq-mean-token-sum-norm",
            ),
            "critic.loss_scale_factor",
        ),
    ];
    let of_clipping = policy_loss::CLIPPING.iter().map(|key| (reinforces, *key));
    rows.iter().copied().chain(of_clipping).map(|((unused, reason), key)| (unused, key, reason)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::super::algorithms::options;
    use super::*;
    use burnish_algorithm::advantage::{self, AdvantageInput, AdvantageOutput, Component, ESTIMATORS};
    use burnish_algorithm::loss::{LossColumns, LossResult, PolicyObjective};
    use burnish_algorithm::options::{OptionValue, Options};
    use burnish_algorithm::policy_loss::{LossOptions, MiniBatch, POLICY_LOSSES, PolicyLoss};
    use burnish_config::schema::Schema;
    use burnish_config::{Choices, Request, complete, defaults, load};
    use burnish_util::rng::Stream;

    const OFFSETS: &[usize] = &[0, 40, 60, 100, 120];

    /// Numbers between −scale and scale, others for each name.
    fn column(name: &str, scale: f64) -> Vec<f32> {
        let mut stream = Stream::new(1, name, &[]);
        (0..120).map(|_| ((2.0 * stream.uniform() - 1.0) * scale) as f32).collect()
    }

    fn loss(policy_loss: &'static PolicyLoss, options: LossOptions) -> LossResult {
        let objective = PolicyObjective { policy_loss, options, entropy_coeff: 0.0, kl_loss: None, top_entropy_quantile: 1.0 };
        let (mask, old) = (vec![1.0; 120], column("old", 1.0).iter().map(|x| x - 2.0).collect::<Vec<f32>>());
        // Ratios on both sides of 1, of tokens and of whole sequences.
        let shift = |t: usize| [0.3, -0.3, 0.4, -0.4][OFFSETS.partition_point(|&start| start <= t) - 1];
        let changes = column("change", 1.0).into_iter().enumerate().map(|(t, change)| change + shift(t));
        let log_prob: Vec<f32> = old.iter().zip(changes).map(|(old, change)| old + change).collect();
        let (entropy, advantages) = (
            column("entropy", 1.0),
            column("advantages", 4.0)
                .iter()
                .enumerate()
                .map(|(t, a)| a + if t % 120 < 60 { 1.0 } else { -1.0 })
                .collect::<Vec<f32>>(),
        );
        let (offsets, options) = (OFFSETS, &objective.options);
        let (log_prob, old_log_prob, mask) = (&log_prob, &old, &mask);
        let mut stream = Stream::new(1, "draws", &[]);
        let (entropy, advantages, reference) = (&entropy, &advantages, column("reference", 1.0));
        let (ref_log_prob, groups) = (Some(reference.as_slice()), &[0, 0, 1, 1][..]);
        let x = MiniBatch { offsets, mask, log_prob, entropy, old_log_prob, advantages, ref_log_prob, groups, options };
        let prepared = objective.prepare(&x, &mut || stream.uniform());
        objective.evaluate(&LossColumns {
            offsets,
            mask,
            log_prob,
            entropy,
            old_log_prob: Some(old_log_prob),
            ref_log_prob: None,
            advantages,
            weights: mask,
            penalty_weights: mask,
            rollout_is_weights: None,
            full_kl: None,
            factor: prepared.factor.as_deref(),
            entropy_mask: None,
        })
    }

    /// The settings of an entry as the built-in configuration has them, and each of them changed in every way.
    fn each_changed(reads: &[&'static str]) -> (Options, Vec<(&'static str, Vec<Options>)>) {
        static CONFIG: LazyLock<PpoConfig> =
            LazyLock::new(|| load::<PpoConfig>(&Request::default(), &Choices::default()).unwrap().config);
        let base = options(&CONFIG, reads).unwrap();
        let written = defaults(PpoConfig::DEFAULT_NAME).unwrap();
        let changed = |key: &&'static str| {
            let name = key.rsplit('.').next().unwrap();
            let words = complete::values(written.root(), &Choices::default(), key);
            let words = words.iter().filter(|word| *word != "null").map(|word| match word.as_str() {
                "true" | "false" => OptionValue::Bool(word == "true"),
                word => word.parse().map_or(OptionValue::from(word), OptionValue::Number),
            });
            let is_number = words.clone().all(|word| matches!(word, OptionValue::Number(_)));
            let numbers = [0.0, 0.05, 0.5, 1.1, 1.5, 5.0].into_iter().filter(|_| is_number).map(OptionValue::Number);
            (*key, words.chain(numbers).map(|value| base.clone().with(name, value)).collect())
        };
        (base.clone(), reads.iter().map(changed).collect())
    }

    /// A loss reads what it says that it reads: anything else is not among its options, and asking for it panics.
    #[test]
    fn losses_read_the_settings_that_they_name() {
        for entry in POLICY_LOSSES {
            let (base, changed) = each_changed(entry.reads);
            let loss = |options: &Options| loss(entry, LossOptions::new(options.clone()));
            for (key, changed) in changed {
                let plain = loss(&base);
                assert!(changed.iter().any(|options| loss(options) != plain), "{} does not read {key}", entry.name);
            }
            loss(&base);
        }
    }

    #[test]
    fn estimators_read_the_settings_that_they_name() {
        let advantages = |entry: &advantage::Estimator, options: &Options| -> AdvantageOutput {
            let (rewards, column, mask) = (column("rewards", 1.0), column("values", 1.0), vec![1.0; 120]);
            let values = |name: &str| self::column(name, 1.0)[..4].iter().map(|&v| Some(f64::from(v))).collect();
            let component = |name: &str| Component { name: name.to_owned(), weight: 1.0, values: values(name) };
            (entry.run)(&AdvantageInput {
                offsets: OFFSETS,
                rewards: &rewards,
                scores: &rewards,
                mask: &mask,
                group: &[0, 0, 1, 1],
                values: Some(&column),
                reward_baselines: Some(&column[..4]),
                old_log_prob: Some(&column),
                sum_pi_squared: Some(&column),
                rollout_is_weights: None,
                components: &[component("a"), component("b")],
                options: options.clone(),
            })
        };
        for entry in ESTIMATORS {
            let (base, changed) = each_changed(entry.reads);
            let plain = advantages(entry, &base);
            for (key, changed) in changed {
                let differs = changed.iter().any(|options| advantages(entry, options) != plain);
                assert!(differs, "{} does not read {key}", entry.name);
            }
        }
    }
}
