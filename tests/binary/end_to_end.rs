//! The real binary on the embedded arithmetic task: reproducible, resumable, and every algorithm option reachable.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{rows, succeed, text, trainer};
use burnish::algorithm::advantage::ESTIMATORS;

/// A run small enough for a test: two mini-batches per step, so that ratios are not all 1.
const SMALL: &[&str] = &[
    "data.train_batch_size=8",
    "data.val_max_samples=32",
    "actor_rollout_ref.rollout.n=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
    "trainer.test_freq=3",
    "trainer.logger=[file]",
];

fn run(folder: &Path, more: &[&str]) -> std::process::Command {
    let mut command = trainer(&["--config", "ppo_trainer.yaml"]);
    command.args(SMALL).arg(format!("trainer.default_local_dir={}", folder.display())).args(more);
    command
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["trainer.total_training_steps=4", "trainer.val_before_train=true"];
    let runs = ["a", "b", "c"].map(|name| {
        let at = folder.path().join(name);
        let mut command = run(&at, &options);
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
        // Long enough that a busy machine still kills it on the way.
        "trainer.total_training_steps=24",
        "trainer.save_freq=2",
        "trainer.max_actor_ckpt_to_keep=2",
        // Everything with state: KL controller, reference, schedule, shuffled mini-batches.
        "algorithm.use_kl_in_reward=true",
        "algorithm.kl_ctrl.type=adaptive",
        "algorithm.kl_ctrl.kl_coef=0.05",
        "actor_rollout_ref.actor.shuffle=true",
        "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
        "actor_rollout_ref.actor.optim.lr_warmup_steps=3",
    ];
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    succeed(run(&whole, &options));

    let mut child = run(&killed, &options).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !killed.join("latest_checkpointed_iteration.txt").exists() {
        assert!(Instant::now() < deadline, "no checkpoint appeared");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap(); // SIGKILL
    assert!(!child.wait().unwrap().success(), "the run ended before it could be killed");
    let before = rows(&killed).len();
    succeed(run(&killed, &options));
    assert!(before < 25, "the run was killed too late to prove anything");
    assert_eq!(text(&killed), text(&whole));
    let read = |run: &Path| std::fs::read(run.join("global_step_24/actor/huggingface/model.safetensors")).unwrap();
    assert!(read(&killed) == read(&whole), "the resumed run ended with other weights");
    assert!(!whole.join("global_step_2").exists() && whole.join("global_step_22").exists(), "retention");
}

#[test]
fn every_estimator_and_every_kind_of_option_trains() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, options: &[&str]| {
        let at = folder.path().join(name);
        let mut command = run(&at, &["trainer.total_training_steps=2", "trainer.val_before_train=false", "trainer.test_freq=-1"]);
        command.args(options);
        succeed(command);
        rows(&at).pop().unwrap().1
    };
    let mut losses = Vec::new();
    for estimator in ESTIMATORS.iter().filter(|e| !e.needs(burnish::algorithm::advantage::Need::Critic)) {
        let last = with(estimator.name, &[&format!("algorithm.adv_estimator={}", estimator.name)]);
        losses.push(last["actor/pg_loss"].as_f64().unwrap());
    }
    losses.sort_by(f64::total_cmp);
    losses.dedup();
    assert_eq!(losses.len(), ESTIMATORS.len(), "two estimators gave one loss");

    let kl = with("kl", &["actor_rollout_ref.actor.use_kl_loss=true", "actor_rollout_ref.actor.kl_loss_type=k3+"]);
    assert!(kl["actor/kl_loss"].as_f64().unwrap() > 0.0, "{kl:?}");
    let plain = with("plain", &[]);
    for (name, option) in [
        ("entropy", "actor_rollout_ref.actor.entropy_coeff=0.1"),
        ("epochs", "actor_rollout_ref.actor.ppo_epochs=2"),
        ("aggregation", "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum"),
        ("shuffle", "actor_rollout_ref.actor.shuffle=true"),
        ("temperature", "actor_rollout_ref.rollout.temperature=0.7"),
        ("top-k", "actor_rollout_ref.rollout.top_k=3"),
        ("top-p", "actor_rollout_ref.rollout.top_p=0.8"),
        ("decay", "actor_rollout_ref.actor.optim.weight_decay=5"),
        ("data-seed", "data.seed=7"),
    ] {
        assert_ne!(with(name, &[option]), plain, "{option} changed nothing");
    }
    // Options that show only beside another one; the coefficient is logged too, so the gradient must tell.
    for (name, beside, option, metric) in [
        ("kl-coef", "actor_rollout_ref.actor.use_kl_loss=true", "actor_rollout_ref.actor.kl_loss_coef=10", "actor/grad_norm"),
        ("clip", "actor_rollout_ref.actor.ppo_epochs=3", "actor_rollout_ref.actor.clip_ratio=0.001", "actor/pg_clipfrac"),
        ("grad-clip", "actor_rollout_ref.actor.optim.eps=1", "actor_rollout_ref.actor.grad_clip=0.001", "actor/grad_norm"),
    ] {
        let (without, changed) = (with(&format!("without-{name}"), &[beside]), with(name, &[beside, option]));
        assert_ne!(changed[metric], without[metric], "{option} changed nothing");
    }
    // Memory options change no gradient beyond rounding.
    let tokens =
        with("tokens", &["actor_rollout_ref.actor.use_dynamic_bsz=true", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=40"]);
    let norm = |row: &serde_json::Map<String, serde_json::Value>| row["actor/grad_norm"].as_f64().unwrap();
    assert!((norm(&tokens) / norm(&plain) - 1.0).abs() < 1e-3, "{} and {}", norm(&tokens), norm(&plain));
}

#[test]
fn supervised_training_learns_resumes_and_its_model_trains_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("sft");
    let sft = |steps: usize| {
        let mut command = trainer(&["sft", "--config", "sft_trainer.yaml"]);
        command.arg(format!("trainer.default_local_dir={}", at.display())).arg(format!("trainer.total_training_steps={steps}"));
        command.args([
            "data.train_batch_size=32",
            "data.micro_batch_size_per_gpu=16",
            "trainer.save_freq=10",
            "trainer.test_freq=10",
        ]);
        command.args(["trainer.logger=[file]", "optim.lr_scheduler_type=constant", "optim.lr_warmup_steps_ratio=0"]);
        succeed(command);
        rows(&at)
    };
    let first = sft(20);
    let loss = |row: &(u64, serde_json::Map<String, serde_json::Value>)| row.1["train/loss"].as_f64().unwrap();
    assert!(loss(&first[19]) < 0.9 * loss(&first[0]), "{} then {}", loss(&first[0]), loss(&first[19]));
    assert!(first[9].1.contains_key("val/loss"));
    let more = sft(25);
    assert_eq!(more[..20], first[..], "resuming rewrote history");
    assert_eq!(more.len(), 25);

    let export = folder.path().join("exported");
    succeed(trainer(&["export", at.join("global_step_20").to_str().unwrap(), "--output", export.to_str().unwrap()]));
    let rl = folder.path().join("rl");
    let model = format!("actor_rollout_ref.model.path={}", export.display());
    succeed(run(&rl, &[&model, "trainer.total_training_steps=1", "trainer.val_before_train=false"]));
}
