//! On-policy distillation in the loop of reinforcement learning: `distillation.enabled`.

use std::path::{Path, PathBuf};

use crate::common::{copy, parts_of_memory, rows, small_run, succeed};

const TEACHER: &str = "data/arithmetic/model";

fn distilled(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let at = folder.join(name);
    let options = [
        "actor_rollout_ref.model.init=random",
        "distillation.enabled=true",
        &format!("distillation.teacher_models.teacher_model.model_path={TEACHER}"),
        "trainer.val_before_train=false",
        "trainer.test_freq=-1",
        "data.val_max_samples=4",
        "trainer.total_training_steps=2",
    ];
    succeed(small_run(&at, &[&options[..], more].concat()));
    at
}

fn near(label: &str, got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance * expected.abs().max(1e-6), "{label}: {got}, not {expected}");
}

fn loss(key: &str) -> String {
    format!("distillation.distillation_loss.{key}")
}

/// A teacher's loss next to the rewards is a KL loss towards a reference that is the teacher, and needs no reference for it.
#[test]
fn a_teacher_beside_rewards_is_a_kl_loss_towards_it() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, kl) in [("reverse_kl", "full"), ("k3", "low_var_kl"), ("mse", "k2"), ("abs", "abs")] {
        let (mode, coef) = (loss(&format!("loss_mode={mode}")), loss("distillation_loss_coef=0.7"));
        let ours = distilled(folder.path(), &format!("{kl}-teacher"), &[&mode, &coef]);
        let theirs = folder.path().join(format!("{kl}-reference"));
        let reference = [
            "actor_rollout_ref.model.init=random",
            "trainer.val_before_train=false",
            "trainer.test_freq=-1",
            "data.val_max_samples=4",
            "trainer.total_training_steps=2",
            "actor_rollout_ref.actor.use_kl_loss=true",
            "actor_rollout_ref.actor.kl_loss_coef=0.7",
            &format!("actor_rollout_ref.ref.model.path={TEACHER}"),
            &format!("actor_rollout_ref.actor.kl_loss_type={kl}"),
        ];
        succeed(small_run(&theirs, &reference));
        for ((step, a), (_, b)) in rows(&ours).iter().zip(&rows(&theirs)) {
            let number = |row: &serde_json::Map<String, serde_json::Value>, key: &str| {
                row[key].as_f64().unwrap_or_else(|| panic!("{key}"))
            };
            let label = format!("{kl}, step {step}");
            near(&label, number(a, "distillation/loss"), number(b, "actor/kl_loss"), 1e-5);
            near(&label, number(a, "actor/grad_norm"), number(b, "actor/grad_norm"), 1e-5);
            near(&label, number(a, "actor/pg_loss"), number(b, "actor/pg_loss"), 1e-5);
        }
    }
}

/// No metric depends on micro-batches, in either direction of the loss; and the policy comes nearer to its teacher.
#[test]
fn every_way_of_distillation_learns_and_no_cut_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (topk, pg, alone) = (loss("topk=5"), loss("use_policy_gradient=true"), loss("use_task_rewards=false"));
    let clamp = loss("loss_max_clamp=4.0");
    let ways: [(&str, &[&str]); 4] =
        [("k3", &[&alone]), ("forward_kl_topk", &[&topk, &alone]), ("jsd", &[&alone]), ("k1", &[&pg, &alone, &clamp])];
    for (mode, options) in ways {
        let chosen = loss(&format!("loss_mode={mode}"));
        let long = ["trainer.total_training_steps=12", "actor_rollout_ref.actor.optim.lr=3e-3", &chosen];
        let whole = rows(&distilled(folder.path(), &format!("{mode}-long"), &[options, &long].concat()));
        // A step has two updates. AdamW's steps follow even the sign of rounding noise in a gradient. With a large eps the steps
        // are proportional to the gradient, so that the second update begins at the same weights except for rounding.
        let steady = ["actor_rollout_ref.actor.optim.eps=1.0", "actor_rollout_ref.actor.optim.lr=0.3", &chosen];
        let one = |name: &str, cut: &str| {
            let cut = format!("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={cut}");
            let step = ["trainer.total_training_steps=1", &cut];
            rows(&distilled(folder.path(), &format!("{mode}-{name}"), &[options, &steady, &step].concat())).remove(0).1
        };
        let (uncut, cut) = (one("whole", "8"), one("cut", "3"));
        for (key, value) in uncut.iter().filter(|(key, _)| key.starts_with("distillation/") || key.ends_with("grad_norm")) {
            near(&format!("{mode} {key}"), cut[key].as_f64().unwrap(), value.as_f64().unwrap(), 1e-4);
        }
        let found = |name: &str| whole[0].1.contains_key(name);
        assert!(found("distillation/loss") && found("distillation/loss_min") && found("distillation/loss_max"), "{mode}");
        assert_eq!(found("distillation/abs_loss"), ["k1", "k3"].contains(&mode));
        assert_eq!(found("distillation/overlap_ratio"), mode == "forward_kl_topk");
        // The loss of the policy gradient is not a distance, but the divergence itself is.
        let key = if mode == "k1" { "distillation/abs_loss" } else { "distillation/loss" };
        // There are few samples, so only the mean over several steps falls.
        let mean =
            |steps: &[(u64, serde_json::Map<_, _>)]| steps.iter().map(|(_, row)| row[key].as_f64().unwrap()).sum::<f64>() / 4.0;
        let (first, last) = (mean(&whole[..4]), mean(&whole[8..]));
        assert!(last < first, "{mode}: {first} at first, {last} at last");
    }
}

/// A copy of a model with padding rows in its embedding, which is also its head.
fn padded(model: &str, folder: &Path, rows: u64) -> PathBuf {
    let at = folder.join("padded");
    copy(Path::new(model), &at);
    let file = std::fs::read(at.join("model.safetensors")).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    let mut data = Vec::new();
    for (name, entry) in header.as_object_mut().unwrap().iter_mut().filter(|(name, _)| *name != "__metadata__") {
        let [start, end] = [0, 1].map(|i| 8 + length + entry["data_offsets"][i].as_u64().unwrap() as usize);
        let begin = data.len();
        data.extend_from_slice(&file[start..end]);
        if name == "model.embed_tokens.weight" {
            let [tokens, width] = [0, 1].map(|i| entry["shape"][i].as_u64().unwrap());
            entry["shape"][0] = (tokens + rows).into();
            data.extend((0..rows * width).flat_map(|i| ((i as f32 * 0.7).sin() * 0.3).to_le_bytes()));
        }
        entry["data_offsets"] = serde_json::json!([begin, data.len()]);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    std::fs::write(at.join("model.safetensors"), file).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(at.join("config.json")).unwrap()).unwrap();
    config["vocab_size"] = (config["vocab_size"].as_u64().unwrap() + rows).into();
    std::fs::write(at.join("config.json"), config.to_string()).unwrap();
    at
}

/// A teacher with a padded vocabulary gives the same values as a teacher without padding, for every measure.
#[test]
fn padding_of_a_teacher_changes_no_measure() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("distillation.teacher_models.teacher_model.model_path={}", padded(TEACHER, folder.path(), 8).display());
    let pg = loss("use_policy_gradient=true");
    for mode in ["k1", "abs", "k2", "k3", "forward_kl_topk", "reverse_kl", "forward_kl", "jsd"] {
        let (chosen, topk) = (loss(&format!("loss_mode={mode}")), loss("topk=5"));
        let mut options = vec![chosen.as_str(), &topk, "data.train_batch_size=4", "trainer.total_training_steps=1"];
        options.extend((mode == "k1").then_some(pg.as_str()));
        let run = |name: &str, more: &[&str]| {
            let (_, row) = rows(&distilled(folder.path(), &format!("{mode}-{name}"), &[&options, more].concat())).remove(0);
            let ours = |name: &String| name.starts_with("distillation/") || name.starts_with("actor/");
            row.into_iter().filter(|(name, _)| ours(name)).collect::<serde_json::Map<_, _>>()
        };
        assert_eq!(run("padded", &[&path]), run("plain", &[]), "{mode}");
    }
}

#[test]
fn what_cannot_be_distilled_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = format!("distillation.teacher_models.teacher_model.model_path={TEACHER}");
    for (options, why) in [
        (vec!["distillation.enabled=true"], "needs a teacher"),
        (vec!["distillation.enabled=true", &teacher, &loss("loss_mode=k1")], "does not depend on the teacher"),
        (
            vec![
                "distillation.enabled=true",
                &teacher,
                &loss("loss_mode=jsd"),
                "actor_rollout_ref.actor.use_kl_loss=true",
                "actor_rollout_ref.actor.kl_loss_type=full",
            ],
            "two distributions at once",
        ),
        (vec!["distillation.enabled=true", &teacher, &loss("loss_mode=forward_kl_topk"), &loss("topk=5000")], "topk=5000"),
        (
            vec![
                "distillation.enabled=true",
                &teacher,
                &loss("use_task_rewards=false"),
                "algorithm.rollout_correction.bypass_mode=true",
            ],
            "selects a loss of the rewards",
        ),
    ] {
        let output = small_run(&folder.path().join("run"), &options).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && messages.contains(why), "{why}: {messages}");
    }
}

/// If the teacher's loss is the only loss, settings of advantages are ignored and named. They change no metric, no critic is
/// trained, and there are no passes of a reference.
#[test]
fn alone_a_teacher_leaves_out_what_makes_advantages() {
    let folder = tempfile::tempdir().unwrap();
    let alone = loss("use_task_rewards=false");
    let run = |name: &str, more: &[&str]| {
        let at = folder.path().join(name);
        let options = [
            "actor_rollout_ref.model.init=random",
            "distillation.enabled=true",
            &format!("distillation.teacher_models.teacher_model.model_path={TEACHER}"),
            &alone,
            "trainer.val_before_train=false",
            "trainer.test_freq=-1",
            "data.train_batch_size=4",
            "trainer.total_training_steps=1",
        ];
        let messages = String::from_utf8(succeed(small_run(&at, &[&options[..], more].concat())).stderr).unwrap();
        (rows(&at), messages)
    };
    let (plain, messages) = run("plain", &[]);
    assert!(!messages.contains("the teacher's loss is the only loss"), "{messages}");
    assert!(!plain[0].1.keys().any(|name| name.contains("advantages") || name.starts_with("critic/v")));
    for (i, options) in [
        vec!["algorithm.use_kl_in_reward=true", "algorithm.kl_ctrl.kl_coef=3"],
        vec!["algorithm.adv_estimator=gae", "critic.optim.lr=1e-3", "algorithm.gamma=0.5"],
        vec!["algorithm.adv_estimator=remax"],
        vec!["algorithm.adv_estimator=grpo", "algorithm.norm_adv_by_std_in_grpo=false"],
        vec!["algorithm.whiten_rewards=true"],
        vec!["algorithm.normalize_advantages=tokens"],
        vec!["algorithm.normalize_reward=true", "algorithm.reward_clip_range=[-0.1,0.1]"],
        vec!["algorithm.missing_eos_penalty=3"],
        vec!["actor_rollout_ref.actor.policy_loss.loss_mode=gspo"],
        vec!["algorithm.rollout_correction.rollout_is=token"],
    ]
    .iter()
    .enumerate()
    {
        let (rows, messages) = run(&i.to_string(), options);
        for option in options {
            let key = option.split('=').next().unwrap();
            let is_named = |line: &str| line.split_once("ignored: ").is_some_and(|(_, rest)| rest.contains(key));
            assert!(messages.lines().any(is_named), "{key}: {messages}");
        }
        assert_eq!(rows, plain, "{options:?}");
    }
    // A single response to a prompt has no group to compare with, and needs none.
    run("one", &["actor_rollout_ref.rollout.n=1", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4"]);
}

/// Its weights and its passes; where whole distributions are compared, also its chunk of the head.
#[test]
fn a_dry_run_counts_the_teacher() {
    let folder = tempfile::tempdir().unwrap();
    let teacher = format!("distillation.teacher_models.teacher_model.model_path={TEACHER}");
    for (enabled, mode, parts) in [("false", "k3", 0), ("true", "k3", 2), ("true", "forward_kl_topk", 2), ("true", "jsd", 3)] {
        let (enabled, mode) = (format!("distillation.enabled={enabled}"), loss(&format!("loss_mode={mode}")));
        let options = ["--dry-run=plan", &enabled, &teacher, &mode, &loss("topk=4")];
        let report = succeed(small_run(&folder.path().join("run"), &options));
        assert_eq!(parts_of_memory(&report, "teacher"), parts, "{enabled} {mode}: {}", String::from_utf8_lossy(&report.stdout));
    }
}
