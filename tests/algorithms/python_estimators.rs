//! Advantage estimators in Python files: those written for verl return verl's values, and their possible errors are reported.

use std::fs;
use std::time::Duration;

use burnish::reward::python::{PoolOptions, PythonColumn, PythonEstimator};
use burnish::reward::reward_error::{RewardError, RewardFailure};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cases::{Case, assert_close, goldens, number};
use crate::numpy::has_numpy;

const FILE: &str = "tests/data/estimators/advantages.py";

/// The estimators of the file, each with the entry of verl's values.
const SAME: &[(&str, &str)] = &[
    ("own_grpo", "grpo|norm_adv_by_std_in_grpo=True"),
    ("own_grpo", "grpo|norm_adv_by_std_in_grpo=False"),
    ("own_rloo", "rloo"),
    ("opo", "opo"),
    ("own_reinforce_plus_plus", "reinforce_plus_plus"),
    ("own_gae", "gae"),
    ("own_remax", "remax"),
];

fn options() -> PoolOptions {
    PoolOptions { timeout: Duration::from_secs(60), start_timeout: Duration::from_secs(60), ..Default::default() }
}

/// The ragged columns of a case, by parameter name.
struct Columns(Vec<(&'static str, bool, Vec<f32>)>);

impl Columns {
    fn of(case: &Case) -> Self {
        let tokens = ["token_level_rewards", "values", "old_log_probs", "sum_pi_squared"];
        let mut columns: Vec<_> = tokens.into_iter().map(|name| (name, true, case.input(name))).collect();
        columns.push(("token_level_scores", true, case.input("token_level_rewards")));
        columns.push(("response_mask", true, case.mask.clone()));
        let baselines = case.json["reward_baselines"].as_array().unwrap();
        columns.push(("reward_baselines", false, baselines.iter().map(|value| number(value) as f32).collect()));
        Self(columns)
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.0.iter().find(|(own, ..)| *own == name).unwrap().2
    }

    fn estimate(&self, estimator: &PythonEstimator, case: &Case) -> anyhow::Result<(Vec<f32>, Vec<f32>)> {
        let column = |(name, per_token, values): &'_ (&'static str, bool, Vec<f32>)| (*name, *per_token, values.clone());
        let columns: Vec<_> = self.0.iter().map(column).collect();
        let columns: Vec<PythonColumn> =
            columns.iter().map(|(name, per_token, values)| PythonColumn { name, per_token: *per_token, values }).collect();
        let lengths: Vec<usize> = case.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let group: Vec<usize> = case.json["uid"].as_array().unwrap().iter().map(|uid| number(uid) as usize).collect();
        estimator.estimate(&lengths, &group, &columns)
    }
}

fn trained(case: &Case, column: &[f32]) -> Vec<f32> {
    column.iter().zip(&case.mask).map(|(value, mask)| value * mask).collect()
}

#[test]
fn golden_estimators_written_for_verl_return_its_numbers() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let cases = Case::all(&goldens);
    let all: Vec<_> = cases.iter().flat_map(|case| SAME.iter().map(move |(name, key)| (case, *name, *key))).collect();
    all.par_iter().for_each(|(case, name, key)| {
        let by_std = !key.ends_with("norm_adv_by_std_in_grpo=False");
        let config = json!({"gamma": case.json["gamma"], "lam": case.json["lam"], "norm_adv_by_std_in_grpo": by_std});
        let estimator = PythonEstimator::start(FILE, name, config, options()).unwrap();
        let (advantages, returns) = Columns::of(case).estimate(&estimator, case).unwrap();
        for (label, ours) in [("advantages", advantages), ("returns", returns)] {
            let golden = trained(case, &case.column(&case.json["advantage"][*key][label]));
            assert_close(&format!("{} {key} {label}", case.name), &trained(case, &ours), &golden);
        }
    });
}

#[test]
fn columns_come_as_they_are_and_what_a_function_requires_is_known() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let case = &Case::all(&goldens)[1];
    let estimator = PythonEstimator::start(FILE, "own_returns", json!({}), options()).unwrap();
    for (argument, takes, requires) in [
        ("old_log_probs", true, true),
        ("rollout_is_weights", true, false),
        ("values", false, false),
        ("token_level_rewards", false, false),
    ] {
        assert_eq!((estimator.takes(argument), estimator.requires(argument)), (takes, requires), "{argument}");
    }
    let columns = Columns::of(case);
    let (advantages, returns) = columns.estimate(&estimator, case).unwrap();
    let sum: Vec<f32> = columns.get("old_log_probs").iter().zip(columns.get("token_level_scores")).map(|(a, b)| a + b).collect();
    assert_eq!((advantages, returns.as_slice()), (sum, columns.get("sum_pi_squared")));
}

/// Each entry: (the body of the function, parts of the message).
const MISTAKES: &[(&str, &[&str])] = &[
    ("return None", &["own.py: own returned NoneType None: return (advantages, returns), two columns of shape [16, "]),
    ("return token_level_rewards", &["own returned "]),
    ("return None, token_level_rewards", &["own returned NoneType None as advantages: return numbers of shape [16, "]),
    ("return token_level_rewards, 'x'", &["own returned str 'x' as returns"]),
    (
        "return token_level_rewards.sum(-1), token_level_rewards",
        &["own returned advantages of shape [16]: there are 16 responses of at most ", "so it must be [16, "],
    ),
    ("return {}['gold']", &["own.py failed:\nTraceback", "line 3, in own", "KeyError: 'gold'"]),
    ("return config.gama", &["AttributeError: these settings have no gama; they have gamma, kl_ctrl"]),
    ("return 1 / (config['kl_ctrl'].kl_coef - config.get('gamma') + 1.5)", &["ZeroDivisionError"]),
];

#[test]
fn what_a_function_returns_is_checked() {
    if !has_numpy() {
        return;
    }
    let goldens = goldens();
    let case = &Case::all(&goldens)[0];
    MISTAKES.par_iter().for_each(|(body, parts)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.py");
        fs::write(
            &path,
            format!("def own(token_level_rewards, response_mask, config, **kwargs):\n    print('said')\n    {body}\n"),
        )
        .unwrap();
        let config = json!({"gamma": 2.0, "kl_ctrl": {"kl_coef": 0.5}});
        let estimator = PythonEstimator::start(path.to_str().unwrap(), "own", config, options()).unwrap();
        for again in [false, true] {
            let error = Columns::of(case).estimate(&estimator, case).expect_err(body);
            let failure = error.downcast_ref::<RewardError>().unwrap_or_else(|| panic!("{body}: {error:#}"));
            assert_eq!(failure.kind, RewardFailure::Exception, "{body}");
            for part in *parts {
                assert!(failure.message.contains(part), "{body}, {again}: {failure}");
            }
        }
    });
}

/// Each entry: (a file, the name of an estimator, parts of the message).
const UNUSABLE: &[(&str, &str, &[&str])] = &[
    (
        "from verl.trainer.ppo.core_algos import register_adv_est\n@register_adv_est('own')\ndef f(token_level_rewards): pass\n",
        "own_",
        &["own.py has no own_ (algorithm.adv_estimator); it has own.", "Did you mean \"own\"?"],
    ),
    (
        "def own(rewards, response_mask, gamma): pass\n",
        "own",
        &["own(rewards, response_mask, gamma) requires rewards, which is not"],
    ),
    ("own = 3\n", "own", &["own is not a function but int 3"]),
    ("import nowhere\n", "own", &["ModuleNotFoundError: No module named 'nowhere'"]),
    (
        "from verl.trainer.ppo.core_algos import kl_penalty\n",
        "own",
        &["verl.trainer.ppo.core_algos.kl_penalty", "verl is not installed for ", "register_adv_est"],
    ),
    (
        "from verl.trainer.ppo.core_algos import register_adv_est\nfor f in (min, max):\n    register_adv_est('own')(f)\n",
        "own",
        &["ValueError: own is registered twice"],
    ),
];

#[test]
fn a_file_without_the_estimator_is_refused_at_the_start() {
    if !has_numpy() {
        return;
    }
    for (code, name, parts) in UNUSABLE {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.py");
        fs::write(&path, code).unwrap();
        let started = PythonEstimator::start(path.to_str().unwrap(), name, json!({"gamma": 1.0}), options());
        let Err(error) = started else { panic!("{code} is started") };
        let message = format!("{error:#}");
        for part in *parts {
            assert!(message.contains(part), "{code}: {message}");
        }
    }
    let missing = PythonEstimator::start("no/such.py", "own", Value::Null, options());
    assert!(missing.err().unwrap().to_string().contains("file no/such.py does not exist"));
}

/// Without NumPy, an error names the missing package.
#[test]
fn without_arrays_an_estimator_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("numpy")).unwrap();
    fs::write(folder.path().join("numpy/__init__.py"), "raise ImportError('no arrays')\n").unwrap();
    let python = folder.path().join("python");
    fs::write(&python, format!("#!/bin/sh\nPYTHONPATH={} exec python3 \"$@\"\n", folder.path().display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&python, mode).unwrap();
    let options = PoolOptions { python: python.to_str().unwrap().to_owned(), ..options() };
    let message = PythonEstimator::start(FILE, "own_grpo", json!({}), options).err().unwrap().to_string();
    assert!(message.contains("columns need NumPy or torch") && message.contains("reward.python"), "{message}");
}
