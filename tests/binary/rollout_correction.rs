//! Comparisons of generation and training: importance weights, rejection, and the sampling filters that they see.

use crate::common::{last_step, number};

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
    // Before its first update, the policy equals its reference, for every filter of responses.
    let reward_kl = ["algorithm.use_kl_in_reward=true", hot, top_p];
    assert!(measured("kl", "actor/reward_kl_penalty", &reward_kl).abs() < 1e-5);
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
        ["2", "0.5"].map(|max| weighted(max, &format!("algorithm.rollout_correction.rollout_is_threshold={max}")));
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
