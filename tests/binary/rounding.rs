//! The first step, where the policy equals its reference. Two passes differ only by rounding, which changes no weights.

use std::path::Path;

use serde_json::{Map, Value};

use crate::common::{rows, small_run, succeed};

const KL_IN_REWARD: [&str; 2] = ["algorithm.use_kl_in_reward=true", "algorithm.kl_ctrl.kl_coef=0.1"];
const ALIKE: &str = "reward_model.reward_functions=[integer_format]";

/// The metrics of the first step.
fn first_step(folder: &Path, more: &[&str]) -> Map<String, Value> {
    let base = ["trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.total_training_steps=1"];
    succeed(small_run(folder, &[&base[..], more].concat()));
    rows(folder).remove(0).1
}

fn number(row: &Map<String, Value>, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}"))
}

/// If all responses have the same score, only the KL to the reference is trained. It is 0: neither the KL of generation nor that
/// of a pass has a gradient.
#[test]
fn rounding_makes_no_gradient() {
    let folder = tempfile::tempdir().unwrap();
    let one_update = "actor_rollout_ref.actor.ppo_mini_batch_size=8";
    let estimators = ["rloo", "grpo", "reinforce_plus_plus"].map(|name| format!("algorithm.adv_estimator={name}"));
    let losses = ["k2", "k3", "abs"].map(|kind| format!("actor_rollout_ref.actor.kl_loss_type={kind}"));
    let in_reward = estimators.iter().map(|estimator| [&KL_IN_REWARD[..], &[estimator]].concat());
    let in_loss = losses.iter().map(|kind| vec!["actor_rollout_ref.actor.use_kl_loss=true", kind]);
    for (i, options) in in_reward.chain(in_loss).enumerate() {
        let options = [&options[..], &[one_update, ALIKE]].concat();
        let row = first_step(&folder.path().join(i.to_string()), &options);
        assert_eq!(number(&row, "critic/score/min"), number(&row, "critic/score/max"), "{options:?}");
        assert_eq!(number(&row, "actor/grad_norm"), 0.0, "{options:?}");
    }
}

/// Margins and slopes that jump at 0 are the same for every division of the first update.
#[test]
fn no_sign_of_rounding_depends_on_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let loss = |name: &str| format!("actor_rollout_ref.actor.policy_loss.loss_mode={name}");
    let (dpo, kl_cov) = (loss("dpo"), loss("kl_cov"));
    let ways: [(&str, &[&str], &[&str]); 3] = [
        ("dpo", &[&dpo], &["actor/rewards/accuracies", "actor/rewards/margins", "actor/pg_loss", "actor/grad_norm"]),
        (
            "kl_cov",
            &[&kl_cov, "actor_rollout_ref.actor.policy_loss.kl_cov_ratio=0.5", "actor_rollout_ref.actor.optim.lr=0"],
            &["actor/pg_loss", "actor/grad_norm"],
        ),
        (
            "abs",
            &[
                "actor_rollout_ref.actor.use_kl_loss=true",
                "actor_rollout_ref.actor.kl_loss_coef=1",
                "actor_rollout_ref.actor.kl_loss_type=abs",
            ],
            &["actor/kl_loss", "actor/grad_norm"],
        ),
    ];
    for (name, options, keys) in ways {
        let cut = |size: &str| {
            let at = folder.path().join(format!("{name}-{size}"));
            let size = format!("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={size}");
            let one_update = "actor_rollout_ref.actor.ppo_mini_batch_size=8";
            let updates: &[&str] = if name == "kl_cov" { &[&size] } else { &[&size, one_update] };
            first_step(&at, &[options, updates].concat())
        };
        let (whole, parts) = (cut("32"), cut("3"));
        for key in keys {
            let (a, b) = (number(&whole, key), number(&parts, key));
            assert!((a - b).abs() <= 1e-4 * a.abs().max(1e-2), "{name} {key}: {a} in one piece, {b} in parts");
        }
    }
}
