//! Advantage estimators and post-processing of scores in the user's Python files, in whole runs.

use std::path::Path;
use std::process::Command;

use crate::common::{rows, small_run, succeed};
use crate::numpy::has_numpy;

const FILE: &str = "algorithm.custom_adv_estimator.path=tests/data/estimators/advantages.py";

/// The advantages of the first step, and the metrics of the second.
fn learned(run: &Path) -> Vec<f64> {
    let names = ["critic/advantages/max", "critic/advantages/min", "critic/returns/mean", "actor/grad_norm"];
    rows(run).iter().flat_map(|(_, row)| names.map(|name| row[name].as_f64().unwrap())).collect()
}

#[test]
fn an_estimator_of_a_file_trains_as_the_same_one_built_in() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (own, built_in, more) in [
        ("own_grpo", "grpo", &[][..]),
        ("own_remax", "remax", &[]),
        ("own_gae", "gae", &["critic.enable=true", "algorithm.lam=0.9", "algorithm.gamma=0.9"]),
    ] {
        let run = |name: &str, file: &[&str]| {
            let at = folder.path().join(name);
            let mut command = small_run(&at, &["trainer.total_training_steps=2", "trainer.val_before_train=false"]);
            command.args(more).args(file).arg(format!("algorithm.adv_estimator={name}"));
            succeed(command);
            learned(&at)
        };
        let (ours, theirs) = (run(built_in, &[]), run(own, &[FILE]));
        assert!(ours.iter().any(|number| *number != 0.0), "{built_in} has nothing to compare");
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * a.abs().max(1.0);
        assert!(ours.iter().zip(&theirs).all(close), "{own}: {theirs:?}\n{built_in}: {ours:?}");
    }
}

fn misbehaving(run: &Path, does: &str) -> Command {
    let mut command =
        small_run(run, &["trainer.total_training_steps=2", "trainer.save_freq=1", "trainer.val_before_train=false"]);
    command.args(["algorithm.custom_adv_estimator.path=tests/data/estimators/misbehaves.py", "algorithm.adv_estimator=own"]);
    command.args(["reward.timeout=2", "reward.pass_env=[DOES,SINCE]"]);
    command.env("DOES", does).env("SINCE", run.join("global_step_1"));
    command
}

/// Each entry: (the file's behaviour at step 2, parts of the message).
const MISBEHAVES: &[(&str, &[&str])] = &[
    ("raises", &["misbehaves.py failed:", "in raises", "KeyError: 'missing key'"]),
    ("hangs", &["own took longer than 2 s (reward.timeout)", "in hangs"]),
    ("exits", &["its process ended with exit status 7"]),
    ("another_shape", &["own returned advantages of shape [32, 1]: there are 32 responses of at most"]),
];

#[test]
fn an_estimator_that_fails_costs_no_training_state() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (does, parts) in MISBEHAVES {
        let run = folder.path().join(does);
        let output = misbehaving(&run, does).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        let always =
            ["error: step 2: algorithm.adv_estimator=own: ", "the state after step 1 is saved; the same command resumes"];
        for part in always.iter().chain(*parts) {
            assert!(message.contains(part), "{does}: no {part:?} in\n{message}");
        }
        assert_eq!(rows(&run).len(), 1, "half a step was written");
    }
    succeed(misbehaving(&folder.path().join("raises"), "nothing"));
    let nan = misbehaving(&folder.path().join("nan"), "not_a_number").output().unwrap();
    let message = String::from_utf8_lossy(&nan.stderr).into_owned();
    assert!(message.contains("step 2: `advantages` for the response"), "{message}");
    assert!(message.contains("algorithm.adv_estimator=own of tests/data/estimators/misbehaves.py"), "{message}");
}

#[test]
fn scores_are_processed_by_a_file_before_anything_is_made_of_them() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let processing = "algorithm.post_processing.path=tests/data/estimators/processing.py";
    let run = |name: &str, options: &[&str]| {
        let at = folder.path().join(name);
        let mut command = small_run(&at, &["trainer.total_training_steps=1", "trainer.val_before_train=false"]);
        command.args(options);
        succeed(command);
        rows(&at)[0].1.clone()
    };
    let plain = run("plain", &[]);
    let number = |row: &serde_json::Map<String, serde_json::Value>, name: &str| row[name].as_f64().unwrap();
    let same = ["critic/score/mean", "critic/advantages/max", "actor/grad_norm"];
    let nothing = run("nothing", &[processing, "algorithm.post_processing.name=nothing"]);
    let less = run("less", &[processing, "algorithm.post_processing.name=less_one"]);
    for name in same {
        assert_eq!(number(&nothing, name), number(&plain, name), "{name}");
    }
    assert!((number(&less, same[0]) + 1.0 - number(&plain, same[0])).abs() < 1e-6, "{less:?}");
    // Of 32 responses, the right ones are kept with score 1, and the first response to each of the 8 prompts gets 3 more.
    let some = run("some", &[processing]);
    let (left_out, right) = (number(&some, "reward/left_out_ratio"), 32.0 * number(&some, "reward/acc/mean"));
    let sum = number(&some, "critic/score/mean") * 32.0 * (1.0 - left_out);
    assert!(left_out > 0.0 && (sum - (right + 3.0 * 8.0)).abs() < 1e-3, "{some:?}");
    let mut wrong = small_run(&folder.path().join("wrong"), &[processing, "algorithm.post_processing.name=too_few"]);
    let output = wrong.arg("trainer.val_before_train=false").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    for part in ["error: step 1: algorithm.post_processing.path=", "too_few returned scores of shape [3]: there are 32 responses"]
    {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn estimators_that_cannot_be_used_are_refused_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |options: &[&str]| {
        let mut command = small_run(&folder.path().join("run"), &["actor_rollout_ref.model.path=no/such/model"]);
        let output = command.args(options).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {message}");
        message
    };
    let mut cases: Vec<(&[&str], &[&str])> = vec![
        (&["algorithm.adv_estimator=own_grpo"], &["must be one of rloo, ", "algorithm.custom_adv_estimator.path=FILE"]),
        (&[FILE, "algorithm.adv_estimator=grpo"], &["the built-in `grpo`", "a name in the file"]),
    ];
    if has_numpy() {
        let more: &[(&[&str], &[&str])] = &[
            (&["algorithm.custom_adv_estimator.path=no/such.py", "algorithm.adv_estimator=own"], &["file no/such.py"]),
            (&[FILE, "algorithm.adv_estimator=own_grop"], &["has no own_grop", "Did you mean \"own_grpo\"?"]),
            (&["--dry-run=plan", FILE, "algorithm.adv_estimator=own_grop"], &["Did you mean \"own_grpo\"?"]),
            (
                &[
                    "algorithm.post_processing.path=tests/data/estimators/processing.py",
                    "algorithm.post_processing.name=post_proces",
                ],
                &["has no post_proces (algorithm.post_processing.name)", "Did you mean \"post_process\"?"],
            ),
            (
                &["algorithm.post_processing.path=tests/data/estimators/processing.py", "algorithm.adv_estimator=remax"],
                &["those of greedy responses"],
            ),
            (&[FILE, "algorithm.adv_estimator=own_gae"], &["requires `values`", "write critic.enable=true"]),
            (
                &[FILE, "algorithm.adv_estimator=own_returns"],
                &["requires `sum_pi_squared`", "actor.calculate_sum_pi_squared=true"],
            ),
            (&[FILE, "algorithm.adv_estimator=own_remax", "algorithm.whiten_rewards=true"], &["whiten_rewards does not see"]),
        ];
        cases.extend(more);
    }
    for (options, parts) in cases {
        let message = refused(options);
        for part in parts {
            assert!(message.contains(part), "{options:?}: no {part:?} in\n{message}");
        }
    }
}
