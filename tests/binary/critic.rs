//! PPO with a critic, through the real binary.

use std::path::Path;

use serde_json::{Map, Value};

use crate::common::{rows, small_run, succeed, text};

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
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let steps = run(&a, &[]);
    for key in ["vf_loss", "vf_clipfrac", "vpred_mean", "grad_norm", "lr", "vf_explained_var", "values/mean", "returns/mean"] {
        assert!(steps[0].1.contains_key(&format!("critic/{key}")), "{key}");
    }
    // The first values are those of a head that knows nothing; they are learnt.
    let number = |row: &Map<String, Value>, key: &str| row[key].as_f64().unwrap();
    assert!(number(&steps[2].1, "critic/vf_loss") < number(&steps[0].1, "critic/vf_loss"));
    // Other micro-batches, of trajectories or of tokens: the same numbers but for rounding.
    let cuts: [&[&str]; 2] = [
        &["critic.ppo_micro_batch_size_per_gpu=2", "critic.forward_micro_batch_size_per_gpu=5"],
        &["critic.use_dynamic_bsz=true", "critic.ppo_max_token_len_per_gpu=40"],
    ];
    for cut in cuts {
        let cut = run(&b, cut);
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
fn killed_critics_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    let options = [
        "trainer.save_freq=1",
        "trainer.total_training_steps=4",
        "algorithm.use_kl_in_reward=true",
        "algorithm.kl_ctrl.type=adaptive",
        "algorithm.kl_ctrl.kl_coef=0.05",
        "critic.shuffle=true",
        "critic.ppo_epochs=2",
        "critic.optim.lr_scheduler_type=cosine",
    ];
    run(&whole, &options);
    run(&stopped, &options);
    for step in [3, 4] {
        std::fs::remove_dir_all(stopped.join(format!("global_step_{step}"))).unwrap();
    }
    std::fs::write(stopped.join("latest_checkpointed_iteration.txt"), "2").unwrap();
    run(&stopped, &options);
    assert_eq!(text(&whole), text(&stopped));
    for part in ["actor", "critic"] {
        for file in ["huggingface/model.safetensors", "optim.safetensors"] {
            let read = |run: &Path| std::fs::read(run.join("global_step_4").join(part).join(file)).unwrap();
            assert_eq!(read(&whole), read(&stopped), "{part}/{file}");
        }
    }
    // Its critic starts another run, which needs no other one.
    let critic = whole.join("global_step_4/critic/huggingface");
    run(&folder.path().join("on"), &[&format!("critic.model.path={}", critic.display())]);
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
