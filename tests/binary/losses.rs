//! Policy losses in the user's Python files, in whole runs.

use std::path::Path;
use std::process::Command;

use crate::common::{rows, small_run, succeed};
use crate::numpy::has_numpy;

const FILE: &str = "actor_rollout_ref.actor.policy_loss.path=tests/data/losses/policy_losses.py";

/// Two updates per step, in micro-batches.
fn run(at: &Path, loss: &str, more: &[&str]) -> Command {
    let mut command = small_run(at, &["trainer.total_training_steps=2", "trainer.save_freq=1", "trainer.val_before_train=false"]);
    command.args(["actor_rollout_ref.actor.ppo_epochs=2", "actor_rollout_ref.actor.entropy_coeff=0.01"]);
    command.arg(format!("actor_rollout_ref.actor.policy_loss.loss_mode={loss}")).args(more);
    command
}

#[test]
fn a_loss_of_a_file_trains_as_the_same_one_built_in() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let learned = |name: &str, file: &[&str]| {
        let at = folder.path().join(name);
        succeed(run(&at, name, file));
        let names = ["actor/pg_loss", "actor/grad_norm", "actor/entropy", "critic/score/mean"];
        rows(&at).iter().flat_map(|(_, row)| names.map(|name| row[name].as_f64().unwrap())).collect::<Vec<f64>>()
    };
    let (built_in, own) = (learned("gpg", &[]), learned("gpg_by_hand", &[FILE]));
    assert!(built_in.iter().any(|number| *number != 0.0), "nothing to compare");
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * a.abs().max(1e-2);
    assert!(built_in.iter().zip(&own).all(close), "{own:?}\n{built_in:?}");
    let clip =
        rows(&folder.path().join("gpg_by_hand")).iter().map(|(_, row)| row["actor/clip"].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(clip.len() == 2 && clip.iter().all(|clip| (clip - 0.2).abs() < 1e-12), "{clip:?}");
}

/// Each entry: (further arguments, parts of the message).
const REFUSED: &[(&str, &[&str], &[&str])] = &[
    ("vanilla", &[FILE], &["policy_loss.path` is set but not used, because `actor_rollout_ref.actor.policy_loss.loss_mode` is"]),
    (
        "gpg_by_hand",
        &[FILE, "actor_rollout_ref.actor.policy_loss.top_entropy_quantile=0.5"],
        &["top_entropy_quantile` chooses tokens for a built-in loss"],
    ),
    ("gpg_by_hand", &[FILE, "actor_rollout_ref.actor.loss_agg_mode=prompt-mean"], &["prompt-mean` needs the prompts"]),
    (
        "gpg_by_hand",
        &[FILE, "actor_rollout_ref.actor.policy_loss.off_policy_mask_threshold=0.1"],
        &["off_policy_mask_threshold` leaves responses out of a built-in loss"],
    ),
    (
        "entropy_by_hand",
        &[
            FILE,
            "algorithm.rollout_correction.rollout_rs=token_k1",
            "algorithm.rollout_correction.rollout_rs_threshold=2",
            "algorithm.rollout_correction.count_rejected=true",
        ],
        &["has no parameter `rollout_is_weights`, by which count_rejected=true leaves tokens out"],
    ),
    (
        "entropy_by_hand",
        &[FILE, "algorithm.rollout_correction.rollout_is=token"],
        &["entropy_by_hand in tests/data/losses/policy_losses.py has no parameter `rollout_is_weights`"],
    ),
];

#[test]
fn settings_without_an_effect_on_a_loss_of_a_file_are_refused() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (loss, more, parts) in REFUSED {
        let output = run(folder.path(), loss, more).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in *parts {
            assert!(message.contains(part), "no {part:?} in\n{message}");
        }
    }
}

/// In the first update of a step, nothing is lost: the state before the step is saved.
#[test]
fn a_loss_that_fails_costs_no_training_state() {
    if !has_numpy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, at) = (folder.path().join("fails.py"), folder.path().join("run"));
    let since = at.join("global_step_1");
    let code = format!(
        "import os\ndef own(log_prob, **kwargs):\n    if os.path.exists({since:?}):\n        raise KeyError('missing key')\n    return 0.0, {{}}, log_prob * 0 + 1e-3\n"
    );
    std::fs::write(&path, code).unwrap();
    let file = format!("actor_rollout_ref.actor.policy_loss.path={}", path.display());
    let output = run(&at, "own", &[&file]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in [
        "step 2: actor_rollout_ref.actor.policy_loss.loss_mode=own: ",
        "KeyError: 'missing key'",
        "the state after step 1 is saved",
    ] {
        assert!(message.contains(part), "no {part:?} in\n{message}");
    }
    assert_eq!(rows(&at).len(), 1, "half a step was written");
}
