//! A resumed run is byte-identical to one that never stopped, in the middle of an epoch and at its end.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{copy, rows, small_run, succeed, text};

/// An epoch has four steps, with a checkpoint after each.
const SHORT_EPOCHS: &[&str] = &[
    "data.train_max_samples=32",
    "trainer.total_epochs=3",
    "trainer.total_training_steps=6",
    "trainer.save_freq=1",
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    "actor_rollout_ref.actor.shuffle=true",
];

const RUNS: &[(&str, &[&str])] = &[
    (
        "PPO with adaptive KL",
        &[
            "algorithm.adv_estimator=gae",
            "critic.optim.lr=1e-3",
            "critic.ppo_epochs=2",
            "algorithm.use_kl_in_reward=true",
            "algorithm.kl_ctrl.type=adaptive",
            "algorithm.kl_ctrl.kl_coef=0.05",
        ],
    ),
    (
        "GRPO with dynamic sampling, by 8-bit AdamW",
        &[
            "algorithm.adv_estimator=grpo",
            "algorithm.filter_groups.enable=true",
            "algorithm.filter_groups.metric=acc",
            "actor_rollout_ref.actor.optim.optimizer=AdamW8bit",
        ],
    ),
    (
        "A*-PO, whose values of prompts are in the checkpoint",
        &[
            "algorithm.adv_estimator=a2po",
            "algorithm.a2po.num_value_samples=3",
            "actor_rollout_ref.actor.policy_loss.loss_mode=a2po",
        ],
    ),
    (
        // Only the last checkpoint has an updated policy.
        "PPO whose policy waits for the critic",
        &[
            "algorithm.adv_estimator=gae",
            "trainer.critic_warmup=6",
            "algorithm.use_kl_in_reward=true",
            "algorithm.kl_ctrl.kl_coef=0.05",
        ],
    ),
    (
        "LoRA of the policy and the critic, by Muon and Adafactor",
        &[
            "algorithm.adv_estimator=gae",
            "actor_rollout_ref.model.lora_rank=4",
            "critic.model.lora_rank=2",
            "actor_rollout_ref.actor.use_kl_loss=true",
            "actor_rollout_ref.actor.optim.lr=3e-3",
            "actor_rollout_ref.actor.optim.optimizer=Muon",
            "critic.optim.optimizer=Adafactor",
        ],
    ),
];

/// All files of a checkpoint except its manifest, which has a count of saves.
fn files(checkpoint: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut pending) = (Vec::new(), vec![checkpoint.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(checkpoint).unwrap().to_owned();
            match path.is_dir() {
                true => pending.push(path),
                // The configuration contains the folder of the run.
                false if ["manifest.json", "config.yaml"].iter().any(|other| name == Path::new(other)) => {}
                false => found.push((name, fs::read(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Current settings apply, not the settings of the checkpoint; only the β of an adaptive KL controller is restored.
#[test]
fn the_kl_controller_follows_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let adaptive = ["algorithm.use_kl_in_reward=true", "algorithm.kl_ctrl.type=adaptive", "algorithm.kl_ctrl.kl_coef=0.05"];
    let horizon =
        ["algorithm.kl_ctrl.horizon=100", "trainer.val_before_train=false", "trainer.save_freq=1", "trainer.test_freq=-1"];
    let options = [&adaptive[..], &horizon].concat();
    succeed(small_run(&base, &[&options[..], &["trainer.total_training_steps=2"]].concat()));
    let controller = |run: &Path, step: u64| -> Value {
        let state = fs::read(run.join(format!("global_step_{step}/trainer_state.json"))).unwrap();
        serde_json::from_slice::<Value>(&state).unwrap()["kl_controller"].take()
    };
    let moved = controller(&base, 2)["coef"].as_f64().unwrap();
    assert!(moved != 0.05);
    let go_on = |name: &str, steps: u64, more: &[&str]| {
        let run = folder.path().join(name);
        if !run.exists() {
            copy(&base, &run);
        }
        let from = format!("trainer.resume_from_path={}", run.join(format!("global_step_{}", steps - 1)).display());
        let steps = format!("trainer.total_training_steps={steps}");
        let resume = ["trainer.resume_mode=resume_path", &from, &steps];
        let output = succeed(small_run(&run, &[&options[..], more, &resume].concat()));
        let coefficient = rows(&run).last().unwrap().1["actor/reward_kl_penalty_coeff"].as_f64().unwrap();
        (run, coefficient, String::from_utf8(output.stderr).unwrap())
    };
    for (name, change, coefficient, kind) in [
        ("same", "trainer.log_completions=0", moved, "adaptive"),
        ("start", "algorithm.kl_ctrl.kl_coef=0.5", 0.5, "adaptive"),
        ("fixed", "algorithm.kl_ctrl.type=fixed", 0.05, "fixed"),
        ("target", "algorithm.kl_ctrl.target_kl=7", moved, "adaptive"),
        ("horizon", "algorithm.kl_ctrl.horizon=64000", moved, "adaptive"),
    ] {
        let (run, found, messages) = go_on(name, 3, &[change]);
        assert_eq!(found, coefficient, "{name}");
        let now = controller(&run, 3);
        assert_eq!(now["type"], kind, "{name}");
        assert_eq!(messages.contains("the coefficient of the KL in the reward is"), found != moved, "{messages}");
        match name {
            "target" => assert_eq!(now["target"], 7.0),
            "horizon" => assert_eq!(now["horizon"], 64000.0),
            _ => {}
        }
    }
    // The next resume continues with the settings in effect since then, and has nothing to report.
    let before = controller(&folder.path().join("start"), 3)["coef"].as_f64().unwrap();
    let (_, found, messages) = go_on("start", 4, &["algorithm.kl_ctrl.kl_coef=0.5"]);
    assert_eq!(found, before);
    assert!(!messages.contains("kl_coef") && !messages.contains("coefficient"), "{messages}");
}

#[test]
fn resumed_in_mid_epoch_and_at_its_end_equals_never_stopped() {
    for (label, options) in RUNS {
        let folder = tempfile::tempdir().unwrap();
        let options = [SHORT_EPOCHS, options].concat();
        let (whole, resumed) = (folder.path().join("whole"), folder.path().join("resumed"));
        succeed(small_run(&whole, &options));
        succeed(small_run(&resumed, &options));
        let last = files(&whole.join("global_step_6"));
        assert!(last.iter().any(|(name, _)| name.ends_with("actor/optim.safetensors")), "{label}");
        for stopped in [4, 3] {
            for later in stopped + 1..=6 {
                fs::remove_dir_all(resumed.join(format!("global_step_{later}"))).unwrap();
            }
            fs::write(resumed.join("latest_checkpointed_iteration.txt"), stopped.to_string()).unwrap();
            succeed(small_run(&resumed, &options));
            assert_eq!(text(&resumed), text(&whole), "{label}, from step {stopped}");
            let again = files(&resumed.join("global_step_6"));
            for ((name, bytes), (other, others)) in again.iter().zip(&last) {
                assert!(name == other && bytes == others, "{label}, from step {stopped}: {}", name.display());
            }
            assert_eq!(again.len(), last.len(), "{label}, from step {stopped}");
        }
    }
}
