//! Policy losses in Python files: those written for verl return verl's values and gradients, and their possible errors are reported.

use std::fs;
use std::process::Command;
use std::time::Duration;

use burnish::reward::python::{GlobalBatchInfo, PolicyLossColumns, PolicyLossValue, PoolOptions, PythonPolicyLoss};
use burnish::reward::reward_error::{RewardError, RewardFailure};
use serde_json::{Value, json};

use crate::cases::{Case, assert_close, assert_number, goldens, number};
use crate::numpy::has_numpy;

const FILE: &str = "tests/data/losses/policy_losses.py";

/// The aggregations, by the names that the worker gets.
const MODES: [&str; 5] = ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"];

fn options() -> PoolOptions {
    PoolOptions { timeout: Duration::from_secs(60), start_timeout: Duration::from_secs(60), ..Default::default() }
}

fn evaluate(
    loss: &PythonPolicyLoss,
    case: &Case,
    mode: &'static str,
    is_weights: Option<&[f32]>,
) -> anyhow::Result<PolicyLossValue> {
    let names = [("log_prob", "log_probs"), ("old_log_prob", "old_log_probs"), ("advantages", "advantages_in")];
    let inputs = names.map(|(name, key)| (name, case.input(key)));
    let entropy: Vec<f32> = inputs[0].1.iter().map(|x| -x).collect();
    let mut columns: Vec<(&'static str, &[f32])> = inputs.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    columns.extend([("entropy", entropy.as_slice()), ("response_mask", &case.mask)]);
    columns.extend(is_weights.map(|weights| ("rollout_is_weights", weights)));
    loss.evaluate(&PolicyLossColumns {
        lengths: case.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect(),
        columns,
        loss_agg_mode: mode,
        global_batch_info: GlobalBatchInfo {
            dp_size: 1,
            batch_num_tokens: case.mask.iter().map(|&mask| f64::from(mask)).sum(),
            global_batch_size: case.rows(),
            loss_scale_factor: case.width() as f64,
        },
    })
}

/// True if `python3` has torch, which computes gradients. Without it only losses that return their own gradient are called.
fn has_torch() -> bool {
    Command::new("python3").args(["-c", "import torch"]).output().is_ok_and(|output| output.status.success())
}

#[test]
fn golden_losses_written_for_verl_return_its_numbers() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let mut checked = 0;
    for name in ["gpg_by_hand", "own_gpg"].into_iter().take(if has_torch() { 2 } else { 1 }) {
        let loss = PythonPolicyLoss::start(FILE, name, json!({"clip_ratio": 0.25}), options()).unwrap();
        for case in Case::all(&goldens) {
            for (key, golden) in case.json["policy_loss"].as_object().unwrap() {
                let parts: Vec<&str> = key.split('|').collect();
                let (Some(mode), "gpg", true) = (MODES.iter().find(|mode| **mode == parts[1]), parts[0], !key.contains("token,"))
                else {
                    continue;
                };
                let ours = evaluate(&loss, &case, mode, None).unwrap();
                let label = format!("{name}, {} {key}", case.name);
                assert_number(&label, ours.loss, number(&golden["loss"]));
                let trained = |column: &[f32]| column.iter().zip(&case.mask).map(|(v, m)| v * m).collect::<Vec<f32>>();
                assert_close(&label, &trained(&ours.d_log_prob), &trained(&case.column(&golden["grad"])));
                assert!(ours.d_entropy.iter().all(|slope| *slope == 0.0), "{label}");
                let metric = if name == "own_gpg" { "actor/mean_log_prob" } else { "actor/clip" };
                assert!(ours.metrics.len() == 1 && ours.metrics[metric].is_finite(), "{label}: {:?}", ours.metrics);
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "{checked} values of verl's gpg");
}

#[test]
fn weights_and_entropies_are_inputs_and_the_entropy_may_have_a_gradient() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let case = &Case::all(&goldens)[0];
    let start = |name| PythonPolicyLoss::start(FILE, name, json!({"clip_ratio": 0.25}), options()).unwrap();
    let by_hand = start("gpg_by_hand");
    assert!(by_hand.takes("rollout_is_weights") && !by_hand.requires("rollout_is_weights") && !by_hand.takes("ref_log_prob"));
    let (once, twice) = (vec![1.0; case.mask.len()], vec![2.0; case.mask.len()]);
    let [one, two] = [&once, &twice].map(|weights| evaluate(&by_hand, case, "token-mean", Some(weights)).unwrap());
    assert_number("twice the weight", two.loss, 2.0 * one.loss);
    let of_entropy = evaluate(&start("entropy_by_hand"), case, "token-sum", None).unwrap();
    assert!(of_entropy.d_log_prob.iter().all(|slope| *slope == 0.0));
    assert!(of_entropy.d_entropy.iter().zip(&case.mask).all(|(slope, mask)| *slope == -0.5 * mask));
}

/// Each entry: (the body of the function, parts of the message).
const MISTAKES: &[(&str, &[&str])] = &[
    ("return None", &["own.py: own returned NoneType None: return the loss as one number, or (loss, metrics)"]),
    ("return 1, 2, 3, 4", &["own returned tuple (1, 2, 3, 4)"]),
    ("return 0.5, {'actor/x': 'much'}, log_prob", &["own returned str 'much' for the metric actor/x: return a number"]),
    ("return 0.5, {}, {'advantages': log_prob}", &["own returned a gradient by advantages: allowed are log_prob, entropy"]),
    (
        "return 0.5, {}, log_prob.sum(-1)",
        &["own returned the gradient by log_prob of shape [16]: there are 16 responses of at most "],
    ),
    ("return {}['gold']", &["own.py failed:\nTraceback", "line 4, in own", "KeyError: 'gold'"]),
    (
        "return config.clip, {}, log_prob",
        &["AttributeError: these settings have no clip; they have clip_ratio, global_batch_info"],
    ),
    (
        "return agg_loss(log_prob, response_mask, 'mean'), {}, log_prob",
        &["loss_agg_mode 'mean' is not known; known are token-mean"],
    ),
];

#[test]
fn the_result_of_a_loss_is_checked() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let case = &Case::all(&goldens)[0];
    for (body, parts) in MISTAKES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.py");
        let head = "from verl.trainer.ppo.core_algos import agg_loss\ndef own(log_prob, response_mask, config, **kwargs):\n    print('said')\n";
        fs::write(&path, format!("{head}    {body}\n")).unwrap();
        let loss = PythonPolicyLoss::start(path.to_str().unwrap(), "own", json!({"clip_ratio": 0.5}), options()).unwrap();
        let error = evaluate(&loss, case, "token-mean", None).expect_err(body);
        let failure = error.downcast_ref::<RewardError>().unwrap_or_else(|| panic!("{body}: {error:#}"));
        assert_eq!(failure.kind, RewardFailure::Exception, "{body}");
        for part in *parts {
            assert!(failure.message.contains(part), "{body}: {failure}");
        }
    }
}

/// Each entry: (a file, the name of a loss, parts of the message).
const UNUSABLE: &[(&str, &str, &[&str])] = &[
    (
        "from verl.trainer.ppo.core_algos import register_policy_loss\n@register_policy_loss('own')\ndef f(log_prob): pass\n",
        "own_",
        &["own.py has no own_ (actor_rollout_ref.actor.policy_loss.loss_mode); it has own.", "Did you mean \"own\"?"],
    ),
    (
        "def own(log_probs): pass\n",
        "own",
        &["own(log_probs) requires log_probs, which is not passed to it: available are old_log_prob"],
    ),
    ("own = 3\n", "own", &["own is not a function but int 3"]),
    (
        "from verl.trainer.ppo.core_algos import kl_penalty\n",
        "own",
        &["verl.trainer.ppo.core_algos.kl_penalty", "verl is not installed for "],
    ),
];

#[test]
fn a_file_without_the_loss_is_refused_at_the_start() {
    if !has_numpy() {
        return;
    }
    for (code, name, parts) in UNUSABLE {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.py");
        fs::write(&path, code).unwrap();
        let started = PythonPolicyLoss::start(path.to_str().unwrap(), name, Value::Null, options());
        let Err(error) = started else { panic!("{code} is started") };
        let message = format!("{error:#}");
        for part in *parts {
            assert!(message.contains(part), "{code}: {message}");
        }
    }
}
