//! PPO with a critic, through the real binary.

use std::path::Path;

use serde_json::{Map, Value};

use crate::common::{rows, small_run, succeed};

const PPO: &[&str] = &[
    "algorithm.adv_estimator=gae",
    "algorithm.lam=0.95",
    "critic.optim.lr=1e-3",
    "trainer.total_training_steps=3",
    "trainer.val_before_train=false",
];

fn run(folder: &Path, more: &[&str]) -> Vec<(u64, Map<String, Value>)> {
    succeed(small_run(folder, &[PPO, more].concat()));
    rows(folder)
}

#[test]
fn a_critic_is_trained_beside_the_policy_and_cuts_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let steps = run(&folder.path().join("whole"), &[]);
    for key in ["vf_loss", "vf_clipfrac", "vpred_mean", "grad_norm", "lr", "vf_explained_var", "values/mean", "returns/mean"] {
        assert!(steps[0].1.contains_key(&format!("critic/{key}")), "{key}");
    }
    // The first values come from an untrained head, and improve.
    let number = |row: &Map<String, Value>, key: &str| row[key].as_f64().unwrap();
    assert!(number(&steps[2].1, "critic/vf_loss") < number(&steps[0].1, "critic/vf_loss"));
    // Other divisions into micro-batches, by trajectories or by tokens, give the same values except for rounding.
    let cuts: [&[&str]; 2] = [
        &["critic.ppo_micro_batch_size_per_gpu=2", "critic.forward_micro_batch_size_per_gpu=5"],
        &["critic.use_dynamic_bsz=true", "critic.ppo_max_token_len_per_gpu=40"],
    ];
    for (i, cut) in cuts.into_iter().enumerate() {
        let cut = run(&folder.path().join(format!("cut-{i}")), cut);
        for key in ["critic/vf_loss", "critic/grad_norm", "critic/values/mean", "critic/vpred_mean", "actor/pg_loss"] {
            let (a, b) = (number(&steps[0].1, key), number(&cut[0].1, key));
            assert!((a - b).abs() <= 1e-4 * a.abs().max(0.1), "{key}: {a} and {b}");
        }
    }
}

#[test]
fn the_policy_waits_for_the_critic() {
    let folder = tempfile::tempdir().unwrap();
    let steps = run(folder.path(), &["trainer.critic_warmup=3"]);
    let updated = |key: &str| steps.iter().map(|(_, row)| row.contains_key(key)).collect::<Vec<_>>();
    assert_eq!(updated("actor/pg_loss"), [false, false, true]);
    assert_eq!(updated("critic/vf_loss"), [true; 3]);
}

#[test]
fn the_critic_of_a_checkpoint_starts_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    run(&first, &["trainer.save_freq=3"]);
    let critic = format!("critic.model.path={}", first.join("global_step_3/critic/huggingface").display());
    let mut random = small_run(&folder.path().join("random"), &[PPO, &["trainer.total_training_steps=1"]].concat());
    random.args([critic.as_str(), "critic.model.init=random"]);
    let messages = String::from_utf8(succeed(random).stderr).unwrap();
    assert!(messages.contains("critic/huggingface: model.safetensors"), "{messages}");
    let [fresh, learnt] = [rows(&first), run(&second, &[&critic])].map(|steps| steps[0].1["critic/vf_loss"].as_f64().unwrap());
    assert!(learnt < fresh, "{learnt} and {fresh}");
}

#[test]
fn what_has_no_critic_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = small_run(folder.path(), &["algorithm.adv_estimator=gae", "critic.enable=false"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("`gae` needs the critic"), "{message}");
    let output = succeed(small_run(folder.path(), &["trainer.total_training_steps=1", "critic.ppo_epochs=3"]));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("ignored: critic.ppo_epochs: algorithm.adv_estimator=rloo needs no critic"), "{message}");
}
