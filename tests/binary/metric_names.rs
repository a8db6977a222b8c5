//! Metrics under TRL's names.

use crate::common::{last_step, number};

/// The metrics have TRL's names and satisfy TRL's identity: the optimised reward is the score plus the other terms.
#[test]
fn metrics_have_trls_names_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let trl = [
        "actor_rollout_ref.actor.policy_loss.loss_mode=rloo",
        "actor_rollout_ref.actor.ppo_epochs=3",
        "algorithm.use_kl_in_reward=true",
        "algorithm.kl_ctrl.kl_coef=0.5",
        "trainer.metric_names=trl",
    ];
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
