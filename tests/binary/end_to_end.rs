//! The real binary on the embedded arithmetic task: runs are reproducible and resumable, and every algorithm option can be
//! reached.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{rows, small_run, succeed, text, trainer};

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["trainer.total_training_steps=4", "trainer.val_before_train=true"];
    let runs = ["a", "b", "c"].map(|name| {
        let at = folder.path().join(name);
        let mut command = small_run(&at, &options);
        command.arg(format!("trainer.seed={}", if name == "c" { 2 } else { 1 }));
        succeed(command);
        rows(&at)
    });
    assert_eq!(runs[0].iter().map(|(step, _)| *step).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let [a, b, c] = ["a", "b", "c"].map(|name| text(&folder.path().join(name)));
    assert_eq!(a, b);
    assert_ne!(a, c);
    for key in ["actor/pg_loss", "actor/entropy", "actor/grad_norm", "actor/lr", "critic/score/mean", "response_length/mean"] {
        assert!(runs[0][1].1.contains_key(key), "{key} is missing: {:?}", runs[0][1].1.keys());
    }
    assert!(runs[0][0].1.contains_key("val-core/burnish/arithmetic/acc/mean@1"), "{:?}", runs[0][0]);
}

#[test]
fn killed_and_resumed_equals_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        // Enough steps that the kill comes before the end of the run, even on a busy machine.
        "trainer.total_training_steps=24",
        "trainer.save_freq=2",
        "trainer.max_actor_ckpt_to_keep=2",
        // Every option with state: KL controller, reference, schedule, shuffled mini-batches.
        "algorithm.use_kl_in_reward=true",
        "algorithm.kl_ctrl.type=adaptive",
        "algorithm.kl_ctrl.kl_coef=0.05",
        "actor_rollout_ref.ref.sync_ref_model=true",
        "actor_rollout_ref.ref.ref_model_sync_steps=1",
        "actor_rollout_ref.actor.shuffle=true",
        // A data position that moves by more than one batch per step, and its own draws.
        "algorithm.filter_groups.enable=true",
        "algorithm.filter_groups.metric=acc",
        "algorithm.use_pf_ppo=true",
        "actor_rollout_ref.actor.policy_loss.loss_mode=clip_cov",
        "actor_rollout_ref.actor.policy_loss.clip_cov_lb=0",
        "actor_rollout_ref.actor.policy_loss.clip_cov_ratio=0.1",
        "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
        "actor_rollout_ref.actor.optim.lr_warmup_steps=3",
    ];
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    succeed(small_run(&whole, &options));

    let mut child = small_run(&killed, &options).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !killed.join("latest_checkpointed_iteration.txt").exists() {
        assert!(Instant::now() < deadline, "no checkpoint appeared");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap(); // SIGKILL
    assert!(!child.wait().unwrap().success(), "the run ended before it could be killed");
    let before = rows(&killed).len();
    succeed(small_run(&killed, &options));
    assert!(before < 25, "the run was killed too late to prove anything");
    assert_eq!(text(&killed), text(&whole));
    let read = |run: &Path| std::fs::read(run.join("global_step_24/actor/huggingface/model.safetensors")).unwrap();
    assert!(read(&killed) == read(&whole), "the resumed run ended with other weights");
    assert!(!whole.join("global_step_2").exists() && whole.join("global_step_22").exists(), "retention");
}

#[test]
fn supervised_training_learns_resumes_and_its_model_trains_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("sft");
    let sft = |steps: usize| {
        let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml"]);
        command.arg(format!("trainer.default_local_dir={}", at.display())).arg(format!("trainer.total_training_steps={steps}"));
        command.args([
            "data.train_batch_size=32",
            "data.micro_batch_size_per_gpu=16",
            "trainer.save_freq=10",
            "trainer.test_freq=10",
        ]);
        command.args(["trainer.logger=[file]", "optim.lr_scheduler_type=constant", "optim.lr_warmup_steps_ratio=0.1"]);
        command.args(["model.init=random", "optim.lr=1e-3"]);
        let messages = String::from_utf8(succeed(command).stderr).unwrap();
        (rows(&at), messages)
    };
    let (first, messages) = sft(20);
    assert!(messages.contains("not read"), "{messages}");
    let loss = |row: &(u64, serde_json::Map<String, serde_json::Value>)| row.1["train/loss"].as_f64().unwrap();
    assert!(loss(&first[19]) < 0.9 * loss(&first[0]), "{} then {}", loss(&first[0]), loss(&first[19]));
    assert!(first[9].1.contains_key("val/loss"));
    let (more, messages) = sft(25);
    assert!(messages.contains("the run ends at step 25 instead of 20, and so does the schedule"), "{messages}");
    assert_eq!(more[..20], first[..], "resuming rewrote history");
    assert_eq!(more.len(), 25);

    // Unless a setting says otherwise, training starts from the weights in the model's folder.
    let mut command =
        trainer(&["sft", "--config", "arithmetic/first_sft.yaml", "trainer.total_training_steps=1", "data.val_files=null"]);
    let pretrained = folder.path().join("pretrained");
    command.args(["data.train_batch_size=32", "data.micro_batch_size_per_gpu=16", "trainer.logger=[file]"]);
    command.arg(format!("trainer.default_local_dir={}", pretrained.display()));
    let messages = String::from_utf8(succeed(command).stderr).unwrap();
    assert!(!messages.contains("not read"), "{messages}");
    assert!(loss(&rows(&pretrained)[0]) < 0.3 * loss(&first[0]));

    let export = folder.path().join("exported");
    succeed(trainer(&["export", at.join("global_step_20").to_str().unwrap(), "--output", export.to_str().unwrap()]));
    let rl = folder.path().join("rl");
    let model = format!("actor_rollout_ref.model.path={}", export.display());
    succeed(small_run(&rl, &[&model, "trainer.total_training_steps=1", "trainer.val_before_train=false"]));
}
