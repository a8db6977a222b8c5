//! Every option of the algorithms changes the metrics that it is meant to change.

use std::path::Path;

use serde_json::{Map, Value};

use crate::common::{rows, small_run, succeed};

type Row = Map<String, Value>;

/// The metrics of the last step of a small run, which is the second.
fn last_step(folder: &Path, name: &str, options: &[&str]) -> Row {
    let at = folder.join(name);
    let mut command =
        small_run(&at, &["trainer.total_training_steps=2", "trainer.val_before_train=false", "trainer.test_freq=-1"]);
    command.args(options);
    succeed(command);
    rows(&at).pop().unwrap().1
}

fn number(row: &Row, name: &str) -> f64 {
    row.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {name} in {:?}", row.keys()))
}

const LOSS_KL: &str = "actor_rollout_ref.actor.use_kl_loss=true";
const REWARD_KL: &str = "algorithm.use_kl_in_reward=true";
const SYNC: &str = "actor_rollout_ref.ref.sync_ref_model=true";
const SYNC_EVERY_STEP: &str = "actor_rollout_ref.ref.ref_model_sync_steps=1";
const LOSS_MODE: &str = "actor_rollout_ref.actor.policy_loss.loss_mode";
const THREE_EPOCHS: &str = "actor_rollout_ref.actor.ppo_epochs=3";
const TWO_FUNCTIONS: &str = "reward_model.reward_functions=[data_source,integer_format]";
const CUT_OFF: &str = "data.max_response_length=2";

/// Each entry: (name, other options, the option, the metric that it must change)
fn options() -> Vec<(&'static str, Vec<String>, &'static str, &'static str)> {
    let loss = |name: &str| vec![format!("{LOSS_MODE}={name}"), THREE_EPOCHS.to_owned()];
    let beside = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>();
    vec![
        ("entropy", vec![], "actor_rollout_ref.actor.entropy_coeff=0.1", "actor/grad_norm"),
        ("epochs", vec![], "actor_rollout_ref.actor.ppo_epochs=2", "actor/grad_norm"),
        ("aggregation", vec![], "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum", "actor/pg_loss"),
        ("shuffle", vec![], "actor_rollout_ref.actor.shuffle=true", "actor/grad_norm"),
        ("temperature", vec![], "actor_rollout_ref.rollout.temperature=0.7", "actor/entropy"),
        ("top-k", vec![], "actor_rollout_ref.rollout.top_k=1", "critic/score/mean"),
        ("top-p", vec![], "actor_rollout_ref.rollout.top_p=0.5", "critic/score/mean"),
        ("min-p", vec![], "actor_rollout_ref.rollout.min_p=0.5", "critic/score/mean"),
        ("penalty", vec![], "actor_rollout_ref.rollout.repetition_penalty=3", "critic/score/mean"),
        ("presence", vec![], "+actor_rollout_ref.rollout.presence_penalty=2", "critic/score/mean"),
        ("frequency", vec![], "+actor_rollout_ref.rollout.frequency_penalty=2", "critic/score/mean"),
        ("bias", vec![], "+actor_rollout_ref.rollout.logit_bias={4: 3.5}", "critic/score/mean"),
        ("bad-words", vec![], "+actor_rollout_ref.rollout.bad_words=['1','2']", "critic/score/mean"),
        ("allowed", vec![], "+actor_rollout_ref.rollout.allowed_token_ids=[1,2,4,5,6]", "critic/score/mean"),
        ("min-tokens", vec![], "actor_rollout_ref.rollout.min_tokens=4", "response_length/mean"),
        ("stop-text", vec![], "actor_rollout_ref.rollout.stop=['1','2','3']", "response_length/mean"),
        ("longest", beside(&["data.max_prompt_length=6"]), "actor_rollout_ref.rollout.max_model_len=8", "response_length/mean"),
        ("stop", vec![], "actor_rollout_ref.rollout.stop_token_ids=[4,5,6,7,8]", "response_length/mean"),
        ("decay", vec![], "actor_rollout_ref.actor.optim.weight_decay=5", "actor/entropy"),
        ("data-seed", vec![], "data.seed=7", "critic/score/mean"),
        ("kl-coef", beside(&[LOSS_KL]), "actor_rollout_ref.actor.kl_loss_coef=10", "actor/grad_norm"),
        ("ref-sync", beside(&[LOSS_KL, SYNC_EVERY_STEP]), "actor_rollout_ref.ref.sync_ref_model=true", "actor/kl_loss"),
        (
            "ref-mixup",
            beside(&[LOSS_KL, SYNC, SYNC_EVERY_STEP]),
            "actor_rollout_ref.ref.ref_model_mixup_alpha=0.1",
            "actor/kl_loss",
        ),
        ("ref-steps", beside(&[LOSS_KL, SYNC]), SYNC_EVERY_STEP, "actor/kl_loss"),
        ("kl-type", beside(&[LOSS_KL]), "actor_rollout_ref.actor.kl_loss_type=full", "actor/kl_loss"),
        (
            "kl-plus",
            beside(&[LOSS_KL, "actor_rollout_ref.actor.kl_loss_coef=10"]),
            "actor_rollout_ref.actor.kl_loss_type=k3+",
            "actor/grad_norm",
        ),
        ("kl-reward", beside(&[REWARD_KL, "algorithm.kl_ctrl.kl_coef=1"]), "algorithm.kl_penalty=full", "critic/rewards/mean"),
        ("clip", beside(&[THREE_EPOCHS]), "actor_rollout_ref.actor.clip_ratio=0.001", "actor/pg_clipfrac"),
        (
            "grad-clip",
            beside(&["actor_rollout_ref.actor.optim.eps=1"]),
            "actor_rollout_ref.actor.grad_clip=0.001",
            "actor/grad_norm",
        ),
        ("delta", beside(&[THREE_EPOCHS]), "actor_rollout_ref.actor.policy_loss.delta=1.0001", "actor/grad_norm"),
        ("top-entropy", vec![], "actor_rollout_ref.actor.policy_loss.top_entropy_quantile=0.2", "actor/pg_loss"),
        ("tau-pos", loss("sapo"), "actor_rollout_ref.actor.tau_pos=3", "actor/grad_norm"),
        ("tau-neg", loss("sapo"), "actor_rollout_ref.actor.tau_neg=3", "actor/grad_norm"),
        (
            "clip-cov",
            [loss("clip_cov"), beside(&["actor_rollout_ref.actor.policy_loss.clip_cov_lb=0"])].concat(),
            "actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.3",
            "actor/pg_clipfrac",
        ),
        ("kl-cov", loss("kl_cov"), "actor_rollout_ref.actor.policy_loss.kl_cov_ratio=0.5", "actor/grad_norm"),
        ("kl-cov-coef", loss("kl_cov"), "actor_rollout_ref.actor.policy_loss.ppo_kl_coef=10", "actor/grad_norm"),
        (
            "dro",
            [loss("dro"), beside(&["actor_rollout_ref.actor.policy_loss.dro_beta=0.1"])].concat(),
            "actor_rollout_ref.actor.policy_loss.dro_beta=5",
            "actor/grad_norm",
        ),
        ("delta-c", beside(&[THREE_EPOCHS]), "actor_rollout_ref.actor.clip_ratio_c=1.0001", "actor/pg_clipfrac_lower"),
        ("clip-low", beside(&[THREE_EPOCHS]), "actor_rollout_ref.actor.clip_ratio_low=0.001", "actor/pg_clipfrac"),
        ("clip-high", beside(&[THREE_EPOCHS]), "actor_rollout_ref.actor.clip_ratio_high=0.001", "actor/pg_clipfrac"),
        ("kl-reward-coef", beside(&[REWARD_KL]), "algorithm.kl_ctrl.kl_coef=2", "critic/rewards/mean"),
        (
            "scale-factor",
            beside(&["actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm"]),
            "actor_rollout_ref.actor.loss_scale_factor=3",
            "actor/grad_norm",
        ),
        ("clip-cov-lb", loss("clip_cov"), "actor_rollout_ref.actor.policy_loss.clip_cov_lb=-5", "actor/pg_clipfrac"),
        (
            "clip-cov-ub",
            [
                loss("clip_cov"),
                beside(&[
                    "actor_rollout_ref.actor.policy_loss.clip_cov_lb=0",
                    "actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.3",
                ]),
            ]
            .concat(),
            "actor_rollout_ref.actor.policy_loss.clip_cov_ub=0.0001",
            "actor/pg_clipfrac",
        ),
        ("vespo-neg", loss("vespo"), "actor_rollout_ref.actor.policy_loss.vespo_k_neg=5", "actor/grad_norm"),
        ("vespo-rate", loss("vespo"), "actor_rollout_ref.actor.policy_loss.vespo_lambda_pos=9", "actor/grad_norm"),
        ("vespo-rate-neg", loss("vespo"), "actor_rollout_ref.actor.policy_loss.vespo_lambda_neg=9", "actor/grad_norm"),
        ("dpo", loss("dpo"), "actor_rollout_ref.actor.policy_loss.dpo_beta=9", "actor/grad_norm"),
        ("dpo-loss", loss("dpo"), "actor_rollout_ref.actor.policy_loss.dpo_loss_type=hinge", "actor/pg_loss"),
        ("pf-ppo-power", beside(&["algorithm.use_pf_ppo=true"]), "algorithm.pf_ppo.weight_pow=0", "critic/score/mean"),
        (
            "gdpo-keys",
            beside(&["algorithm.adv_estimator=gdpo", TWO_FUNCTIONS]),
            "algorithm.gdpo_reward_keys=[integer_format]",
            "critic/advantages/max",
        ),
        (
            "gdpo-weights",
            beside(&["algorithm.adv_estimator=gdpo", TWO_FUNCTIONS, "algorithm.gdpo_reward_keys=[acc,integer_format]"]),
            "algorithm.gdpo_reward_weights=[-1,1]",
            "actor/pg_loss",
        ),
        ("vespo", loss("vespo"), "actor_rollout_ref.actor.policy_loss.vespo_k_pos=5", "actor/grad_norm"),
        ("gamma", beside(&["algorithm.adv_estimator=reinforce_plus_plus"]), "algorithm.gamma=0.5", "critic/returns/mean"),
        ("std", beside(&["algorithm.adv_estimator=grpo"]), "algorithm.norm_adv_by_std_in_grpo=false", "critic/advantages/max"),
        ("scale", beside(&["algorithm.adv_estimator=trl_grpo"]), "algorithm.scale_rewards=batch", "critic/advantages/max"),
        ("normalise", vec![], "algorithm.normalize_reward=true", "critic/advantages/max"),
        ("clip-reward", vec![], "algorithm.reward_clip_range=[0,0.5]", "critic/advantages/max"),
        ("whiten", vec![], "algorithm.whiten_rewards=true", "critic/rewards/max"),
        ("by-sequence", vec![], "algorithm.normalize_advantages=sequences", "critic/advantages/max"),
        ("by-token", vec![], "algorithm.normalize_advantages=tokens", "critic/advantages/max"),
        ("eos", beside(&[CUT_OFF]), "algorithm.missing_eos_penalty=0.25", "critic/score/mean"),
        ("stop-properly", beside(&[CUT_OFF]), "algorithm.stop_properly_penalty_coef=-0.5", "critic/score/mean"),
        ("truncated", beside(&[CUT_OFF]), "algorithm.mask_truncated_completions=true", "actor/pg_loss"),
        ("pf-ppo", vec![], "algorithm.use_pf_ppo=true", "critic/score/mean"),
        (
            "pf-ppo-method",
            beside(&["algorithm.use_pf_ppo=true"]),
            "algorithm.pf_ppo.reweight_method=max_random",
            "critic/score/mean",
        ),
        ("functions", vec![], "reward_model.reward_functions=[data_source,integer_format]", "critic/score/mean"),
        (
            "weights",
            beside(&["reward_model.reward_functions=[data_source,integer_format]"]),
            "reward_model.reward_weights=[1,0.1]",
            "critic/score/mean",
        ),
        (
            "bypass-loss",
            beside(&[THREE_EPOCHS, "algorithm.rollout_correction.bypass_mode=true"]),
            "algorithm.rollout_correction.loss_type=reinforce",
            "actor/pg_loss",
        ),
    ]
}

#[test]
fn every_option_of_an_algorithm_has_its_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut without: Vec<(Vec<String>, Row)> = Vec::new();
    for (name, beside, option, metric) in options() {
        let beside_text: Vec<&str> = beside.iter().map(String::as_str).collect();
        if without.iter().all(|(known, _)| *known != beside) {
            let row = last_step(folder.path(), &format!("without-{name}"), &beside_text);
            without.push((beside.clone(), row));
        }
        let plain = &without.iter().find(|(known, _)| *known == beside).unwrap().1;
        let changed = last_step(folder.path(), name, &[&beside_text[..], &[option]].concat());
        assert!(number(&changed, metric) != number(plain, metric), "{option} changed nothing: {metric} {}", changed[metric]);
    }
}

/// Memory options change no gradient beyond rounding, even for a loss that depends on the whole mini-batch. There is only one
/// update: Adam makes full steps from gradients of mere rounding noise, and one different token is more than rounding.
#[test]
fn the_size_of_a_micro_batch_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let micro = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu";
    let losses = ["vanilla", "clip_cov", "kl_cov", "gspo", "bypass_mode"];
    for loss in losses {
        let loss_mode = format!("{LOSS_MODE}={loss}");
        let mut options = vec![
            loss_mode.as_str(),
            "actor_rollout_ref.actor.policy_loss.top_entropy_quantile=0.5",
            "actor_rollout_ref.actor.policy_loss.kl_cov_ratio=0.2",
            "actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.2",
            "actor_rollout_ref.actor.policy_loss.clip_cov_lb=0.1",
            "actor_rollout_ref.actor.ppo_mini_batch_size=8",
            "trainer.total_training_steps=1",
        ];
        if loss == "bypass_mode" {
            options.extend([
                "algorithm.rollout_correction.bypass_mode=true",
                "algorithm.rollout_correction.loss_type=reinforce",
                "algorithm.rollout_correction.rollout_is=sequence",
                "algorithm.rollout_correction.rollout_is_batch_normalize=true",
                // A second update, whose ratios are not 1; its size follows the gradient.
                "actor_rollout_ref.actor.ppo_epochs=2",
                "actor_rollout_ref.actor.optim.eps=1",
                "actor_rollout_ref.actor.optim.lr=0.02",
            ]);
        }
        let norms = [format!("{micro}=32"), format!("{micro}=4"), "actor_rollout_ref.actor.use_dynamic_bsz=true".to_owned()].map(
            |size| {
                let more = [&options[..], &[&size, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=40"]].concat();
                number(&last_step(folder.path(), &format!("{loss}-{}", size.len()), &more), "actor/grad_norm")
            },
        );
        assert!(norms.iter().all(|norm| (norm / norms[0] - 1.0).abs() < 1e-3), "{loss}: {norms:?}");
    }
}

/// Every key of the algorithms is tested here, or listed with the reason why not.
#[test]
fn every_key_of_the_algorithms_is_tested() {
    const ELSEWHERE: &[(&str, &str)] = &[
        ("algorithm.adv_estimator", "improve.rs"),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", "improve.rs"),
        ("algorithm.custom_adv_estimator.", "estimators.rs"),
        ("algorithm.post_processing.", "estimators.rs"),
        ("algorithm.turn_rewards", "its unit tests in src/trainer/batch/turn_rewards.rs"),
        ("algorithm.lam", "ignored: there is no critic yet"),
        ("algorithm.use_kl_in_reward", "end_to_end.rs, and with kl_penalty"),
        ("algorithm.kl_ctrl.type", "end_to_end.rs"),
        ("algorithm.kl_ctrl.horizon", "golden_adaptive_kl_controller"),
        ("algorithm.kl_ctrl.target_kl", "golden_adaptive_kl_controller"),
        ("algorithm.filter_groups.", "dynamic_sampling_trains_on_prompts_whose_responses_differ"),
        ("algorithm.rollout_correction.", "rollout_correction_…, and the settings' own tests"),
        ("reward_model.reward_kwargs.", "rollout_correction_and_the_overlong_penalty_report_what_they_do"),
        ("reward_model.reward_manager", "the same"),
        ("reward_model.reward_tokens", "trained_reward_models_score_responses"),
    ];
    // The options in an entry's `reads` are changed one by one in src/trainer/setup/unused_options/reads_tests.rs, which tests
    // that they are read.
    let known = burnish::cli::choices(burnish::config::Kind::Rl);
    let is_read = |key: &str| known.iter().any(|choice| choice.reads.contains(&key));
    let tree = burnish::config::defaults("ppo_trainer").unwrap();
    let tested: Vec<String> =
        options().into_iter().flat_map(|(_, beside, option, _)| [beside, vec![option.to_owned()]].concat()).collect();
    let sections = ["algorithm.", "actor_rollout_ref.actor.policy_loss.", "actor_rollout_ref.actor.tau_", "reward_model.reward_"];
    let is_leaf = |key: &String| !tree.keys().iter().any(|other| other.starts_with(&format!("{key}.")));
    for key in tree.keys().into_iter().filter(|key| sections.iter().any(|s| key.starts_with(s))).filter(is_leaf) {
        let here = tested.iter().any(|option| option.starts_with(&format!("{key}=")));
        assert!(here || is_read(&key) || ELSEWHERE.iter().any(|(known, _)| key.starts_with(known)), "{key} is not tested");
    }
}

#[test]
fn dynamic_sampling_trains_on_prompts_whose_responses_differ() {
    let folder = tempfile::tempdir().unwrap();
    let filter = ["algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=acc", "data.gen_batch_size=4"];
    let dump = format!("trainer.rollout_data_dir={}", folder.path().join("dump").display());
    let row = last_step(folder.path(), "filtered", &[&filter[..], &[&dump]].concat());
    let rounds = number(&row, "train/num_gen_batches");
    assert!(rounds >= 2.0, "8 prompts in batches of 4");
    let evicted = number(&row, "training/filter_groups/evicted_samples");
    assert_eq!(rounds * 4.0 - evicted - number(&row, "training/filter_groups/discarded_surplus_samples"), 8.0);
    let text = std::fs::read_to_string(folder.path().join("dump/2.jsonl")).unwrap();
    let scores: Vec<f64> = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["score"].as_f64().unwrap()).collect();
    assert_eq!(scores.len(), 32);
    assert!(scores.chunks(4).all(|group| group.iter().any(|score| *score != group[0])), "{scores:?}");

    let between = ["algorithm.filter_groups.metric=seq_reward", "algorithm.filter_groups.mean_range=[0.4,0.6]", &dump];
    last_step(folder.path(), "between", &[&filter[..], &between].concat());
    let text = std::fs::read_to_string(folder.path().join("dump/2.jsonl")).unwrap();
    let scores: Vec<f64> = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["score"].as_f64().unwrap()).collect();
    assert!(scores.chunks(4).all(|group| group.iter().sum::<f64>() == 2.0), "{scores:?}");

    let mut hopeless = small_run(&folder.path().join("hopeless"), &filter);
    hopeless.args(["data.max_response_length=1", "algorithm.filter_groups.max_num_gen_batches=3"]);
    let output = hopeless.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("3 batches gave ") && message.contains("max_num_gen_batches"), "{message}");
}

/// With dynamic sampling an epoch has as many steps as without it, however many prompts are sampled per step.
#[test]
fn dynamic_sampling_counts_steps_by_rows() {
    let folder = tempfile::tempdir().unwrap();
    let filter = ["algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=acc", "trainer.total_epochs=2"];
    let run = |size: usize, more: &[&str]| {
        let at = folder.path().join(size.to_string());
        let mut command = small_run(&at, &filter);
        command.args(["data.train_max_samples=16", &format!("data.gen_batch_size={size}")]).args(more);
        (at, command)
    };
    for size in [1, 3, 8, 16] {
        let (_, command) = run(size, &["--dry-run"]);
        let report = String::from_utf8(succeed(command).stdout).unwrap();
        assert!(report.contains("4, 2 per epoch, 2 epochs"), "gen_batch_size={size}:\n{report}");
    }
    let (at, command) = run(3, &["trainer.val_before_train=false", "trainer.test_freq=-1"]);
    succeed(command);
    let epochs: Vec<f64> = rows(&at).iter().map(|(_, row)| number(row, "training/epoch")).collect();
    assert_eq!(epochs, [0.0, 0.0, 1.0, 1.0]);
}

/// With a single training prompt and no limit, it is sampled until there are enough groups whose responses differ.
#[test]
fn one_prompt_is_sampled_until_its_responses_differ() {
    let folder = tempfile::tempdir().unwrap();
    let one = [
        "algorithm.filter_groups.enable=true",
        "algorithm.filter_groups.metric=acc",
        "algorithm.filter_groups.max_num_gen_batches=0",
        "data.train_max_samples=1",
        "data.gen_batch_size=1",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.temperature=3",
    ];
    let row = last_step(folder.path(), "one", &one);
    let rounds = number(&row, "train/num_gen_batches");
    assert_eq!(rounds - number(&row, "training/filter_groups/evicted_samples"), 8.0, "{rounds} times the prompt");

    // Without a number of steps, no number can be derived from less than one batch.
    let mut endless = small_run(&folder.path().join("endless"), &one);
    let output = endless.arg("--dry-run").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("trainer.total_training_steps"), "{message}");
}

/// Sampling filters are part of the rollout policy, but not of the trained policy.
#[test]
fn filters_are_seen_by_what_compares_generation_and_training() {
    let folder = tempfile::tempdir().unwrap();
    let once = ["trainer.total_training_steps=1", "actor_rollout_ref.actor.ppo_mini_batch_size=8"];
    let measured = |name: &str, metric: &str, options: &[&str]| {
        number(&last_step(folder.path(), name, &[&once[..], options].concat()), metric)
    };
    let bypass = "algorithm.rollout_correction.bypass_mode=true";
    let (top_p, hot) = ("actor_rollout_ref.rollout.top_p=0.6", "actor_rollout_ref.rollout.temperature=2");
    let raw = "actor_rollout_ref.rollout.logprobs_mode=raw_logprobs";
    let kl = |name: &str, options: &[&str]| measured(name, "rollout_corr/kl", &[&[bypass], options].concat());
    assert!(kl("plain", &[hot]).abs() < 1e-5);
    // The logarithm of the probability mass that is kept, averaged over tokens.
    assert!(kl("filtered", &[hot, top_p]) > 0.05);
    assert!(kl("penalised", &["actor_rollout_ref.rollout.repetition_penalty=2"]).abs() > 1e-3);
    // The model's own log-probabilities ignore filters, and are at temperature 1.
    assert!(kl("raw", &[raw, top_p]).abs() < 1e-5 && kl("raw and hot", &[raw, hot]).abs() > 0.05);
    let report = ["actor_rollout_ref.rollout.calculate_log_probs=true", hot];
    let difference =
        |name: &str, more: &[&str]| measured(name, "training/rollout_probs_diff_mean", &[&report[..], more].concat());
    assert!(difference("same", &[]) < 1e-5 && difference("different", &[top_p]) > 0.01);
    // Before its first update the policy equals its reference, for any filter of responses.
    let reward_kl = ["algorithm.use_kl_in_reward=true", hot, top_p];
    assert!(measured("kl", "actor/reward_kl_penalty", &reward_kl).abs() < 1e-5);
}

/// A response has ended if generation reports it, even if it does not contain the end-of-sequence token.
#[test]
fn a_response_that_stops_at_another_token_is_not_punished() {
    let folder = tempfile::tempdir().unwrap();
    let digits = "actor_rollout_ref.rollout.stop_token_ids=[4,5,6,7,8,9,10,11,12,13]";
    let row = last_step(folder.path(), "stopped", &[digits, "algorithm.missing_eos_penalty=100"]);
    assert!(number(&row, "response_length/mean") < 2.0 && number(&row, "critic/score/min") >= 0.0, "{row:?}");
}

/// At a high temperature most samples are wrong. A sampled baseline (verl before 0.9) would be as low as the samples.
#[test]
fn the_baseline_of_remax_is_greedy() {
    let folder = tempfile::tempdir().unwrap();
    let row = last_step(folder.path(), "remax", &["algorithm.adv_estimator=remax", "actor_rollout_ref.rollout.temperature=20"]);
    let greedy = number(&row, "critic/score/mean") - number(&row, "critic/advantages/mean");
    assert!(number(&row, "critic/score/mean") < 0.2 && greedy > 0.3, "{row:?}");
}

#[test]
fn rollout_correction_and_the_overlong_penalty_report_what_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let corrected = last_step(
        folder.path(),
        "corrected",
        &[
            "algorithm.rollout_correction.rollout_is=token",
            "algorithm.rollout_correction.rollout_rs='token_k1,seq_mean_k3'",
            "algorithm.rollout_correction.rollout_rs_threshold='0.5_2,0.1'",
        ],
    );
    // Generation and training run the same kernels on the same weights.
    assert!((number(&corrected, "rollout_corr/rollout_is_mean") - 1.0).abs() < 1e-5);
    assert_eq!(number(&corrected, "rollout_corr/rollout_rs_masked_fraction"), 0.0);
    assert!(number(&corrected, "rollout_corr/kl").abs() < 1e-5);

    let one_update = ["trainer.total_training_steps=1", "actor_rollout_ref.actor.ppo_mini_batch_size=8"];
    let weighted = |name: &str, threshold: &str| {
        let weights = ["algorithm.rollout_correction.rollout_is=token", threshold];
        number(&last_step(folder.path(), name, &[&one_update[..], &weights].concat()), "actor/grad_norm")
    };
    let [whole, half] =
        ["2", "0.5"].map(|most| weighted(most, &format!("algorithm.rollout_correction.rollout_is_threshold={most}")));
    assert!((half / whole - 0.5).abs() < 1e-4, "{half} of {whole}");

    let far = last_step(
        folder.path(),
        "far",
        &["algorithm.rollout_correction.rollout_rs=token_k3", "algorithm.rollout_correction.rollout_rs_threshold=1e-30"],
    );
    assert!(number(&far, "rollout_corr/rollout_rs_masked_fraction") > 0.1, "{far:?}");

    let overlong = last_step(
        folder.path(),
        "overlong",
        &[
            "reward_model.reward_manager=dapo",
            "reward_model.overlong_buffer.enable=true",
            "reward_model.overlong_buffer.len=8",
            "reward_model.overlong_buffer.log=true",
        ],
    );
    let length = number(&overlong, "response_length/mean");
    assert!((number(&overlong, "reward/overlong_reward/mean") + length / 8.0).abs() < 1e-6, "{overlong:?}");

    let squares = last_step(folder.path(), "squares", &["actor_rollout_ref.actor.calculate_sum_pi_squared=true"]);
    assert!(number(&squares, "variance_proxy/proxy2_total_power") > 0.0);
}

/// A response that is masked from the loss still counts in means over responses. The ratio is 1, so the loss of a token is −A.
#[test]
fn masked_responses_count_in_means_over_responses() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "trainer.total_training_steps=1",
        // Advantages that do not cancel within a prompt's group, whose responses mostly have equal ends.
        "algorithm.adv_estimator=reinforce",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
        "algorithm.mask_truncated_completions=true",
        "data.max_response_length=3",
        "trainer.log_completions=32",
        "trainer.num_sample_generations=1",
    ];
    let row = last_step(folder.path(), "cut", &options);
    let text = std::fs::read_to_string(folder.path().join("cut/samples.jsonl")).unwrap();
    let samples: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended: Vec<f64> =
        samples.iter().filter(|one| one["finish"] == "stop").map(|one| one["advantage"].as_f64().unwrap()).collect();
    assert!(samples.len() == 32 && (1..32).contains(&ended.len()), "{} of {} ended", ended.len(), samples.len());
    let expected = -ended.iter().sum::<f64>() / 32.0;
    assert!(expected.abs() > 0.01 && (number(&row, "actor/pg_loss") - expected).abs() < 1e-6, "{row:?}, and not {expected}");
}

/// The metrics have TRL's names and satisfy TRL's identity: the optimised reward is the score plus the other terms.
#[test]
fn metrics_have_trls_names_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let loss_mode = format!("{LOSS_MODE}=rloo");
    let trl = [loss_mode.as_str(), THREE_EPOCHS, REWARD_KL, "algorithm.kl_ctrl.kl_coef=0.5", "trainer.metric_names=trl"];
    let row = last_step(folder.path(), "trl", &trl);
    for name in [
        "objective/entropy",
        "policy/approxkl_avg",
        "policy/clipfrac_avg",
        "loss/policy_avg",
        "val/clipfrac_avg",
        "policy/entropy_avg",
        "val/ratio",
        "val/ratio_var",
        "val/num_eos_tokens",
        "completions/mean_length",
        "completions/max_terminated_length",
        "completions/clipped_ratio",
        "clip_ratio/region_mean",
        "entropy",
        "num_tokens",
        "rewards/data_source/mean",
        "rewards/data_source/std",
        "lr",
        "eps",
    ] {
        number(&row, name);
    }
    let parts = number(&row, "objective/scores") + number(&row, "objective/non_score_reward");
    assert!((number(&row, "objective/rlhf_reward") - parts).abs() < 1e-5);
    assert!((number(&row, "objective/non_score_reward") + 0.5 * number(&row, "objective/kl")).abs() < 1e-6);
    assert!(number(&row, "objective/kl") != 0.0 && (number(&row, "val/ratio") - 1.0).abs() < 0.5);
    assert_eq!(number(&row, "episode"), 64.0);
    assert!(!row.keys().any(|key| ["actor/pg_loss", "actor/lr", "critic/score/mean"].contains(&key.as_str())));
    // The first step of both runs differs only by the normalisation: the scores are logged before it, and it removes their mean.
    let first = |name: &str, option: &str| {
        last_step(folder.path(), name, &[&trl[..], &["trainer.total_training_steps=1", option]].concat())
    };
    let [raw, normalised] = ["false", "true"].map(|on| first(on, &format!("algorithm.normalize_reward={on}")));
    assert_eq!(number(&normalised, "objective/scores"), number(&raw, "objective/scores"));
    assert!((number(&normalised, "objective/rlhf_reward") - number(&normalised, "objective/non_score_reward")).abs() < 1e-5);
    let verl = last_step(folder.path(), "verl", &[&trl[..], &["trainer.metric_names=verl"]].concat());
    assert!(verl.contains_key("actor/pg_loss") && !verl.keys().any(|key| key.starts_with("objective/") || key == "val/ratio"));
}

/// Rows without a ground truth have no score: they are counted and have advantage 0. A batch that lacks some value altogether is
/// not an error.
#[test]
fn responses_that_nothing_scores_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, scored: usize| {
        let row = |i: usize| {
            let truth = if i < scored { Value::from((20 + 2 * i).to_string()) } else { Value::Null };
            let prompt = format!("{}+{}=", 10 + i, 10 + i);
            serde_json::json!({"data_source": "burnish/arithmetic", "prompt": prompt, "reward_model": {"ground_truth": truth}})
        };
        let lines: String = (0..8).map(|i| format!("{}\n", row(i))).collect();
        let path = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, lines).unwrap();
        format!("data.train_files={}", path.display())
    };
    let half = last_step(folder.path(), "half", &[&file("half", 4)]);
    assert_eq!(number(&half, "reward/abstained_ratio"), 0.5);
    assert!(number(&half, "actor/grad_norm") > 0.0);
    let rare = [&file("rare", 1), "algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys=[acc,score]"];
    last_step(folder.path(), "rare", &[&rare[..], &["data.train_batch_size=4", "trainer.total_training_steps=4"]].concat());
    let none = last_step(folder.path(), "none", &[&file("none", 0)]);
    assert_eq!((number(&none, "reward/abstained_ratio"), number(&none, "actor/grad_norm")), (1.0, 0.0));
    assert!(!none.contains_key("critic/score/mean"), "no score has no mean");
}
