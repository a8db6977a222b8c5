//! The user's reward functions in whole runs. The same rule gives the same run in every calling convention, and a failing
//! function loses no training state.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{rows, small_run, succeed, text, trainer};

const RULE: &str = "tests/data/rewards/arithmetic.py";
const STEPS: &[&str] = &["trainer.total_training_steps=2", "reward.num_workers=2", "trainer.val_before_train=false"];

/// The sampled tokens and metrics, independent of the functions' names.
fn learned(run: &Path) -> Vec<Vec<Option<f64>>> {
    let names = ["critic/score/mean", "critic/advantages/max", "actor/pg_loss", "actor/grad_norm", "response_length/mean"];
    rows(run).iter().map(|(_, row)| names.iter().map(|name| row.get(*name).and_then(Value::as_f64)).collect()).collect()
}

#[test]
fn every_way_to_ask_the_same_rule_gives_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, options: &[&str]| {
        let at = folder.path().join(name);
        succeed({
            let mut command = small_run(&at, STEPS);
            command.args(options);
            command
        });
        at
    };
    let native = run("native", &[]);
    assert!(learned(&native).iter().flatten().all(Option::is_some));
    let path = format!("custom_reward_function.path={RULE}");
    for (name, manager) in [
        ("compute_score", "naive"),
        ("with_parts", "dapo"),
        ("positional", "prime"),
        ("batch", "batch"),
        ("trl", "naive"),
        ("reward_func", "naive"),
    ] {
        let (function, manager) =
            (format!("custom_reward_function.name={name}"), format!("reward_model.reward_manager={manager}"));
        let requested = run(name, &[&path, &function, &manager]);
        assert_eq!(learned(&requested), learned(&native), "{name}");
        let calls = rows(&requested)[0].1[&format!("reward/{name}/calls")].as_f64();
        assert_eq!(calls, Some(if ["batch", "trl"].contains(&name) { 1.0 } else { 32.0 }), "{name}");
    }
    // The number of concurrent calls and the composition of the row do not matter either.
    let both = "reward_model.reward_functions=[compute_score,data_source]";
    let weights = "reward_model.reward_weights=[0.25,0.75]";
    let one = run("one", &[&path, both, weights, "reward.num_workers=1"]);
    let three = run("three", &[&path, both, weights, "reward.num_workers=3"]);
    assert_eq!(learned(&one), learned(&native));
    let messages =
        |run: &Path| text(run).lines().map(|line| line.split("latency").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(messages(&one), messages(&three));
}

/// Each entry: (the file's behaviour at step 2, settings, parts of the message)
const MISBEHAVES: &[(&str, &str, &[&str])] = &[
    ("raises", "", &["Traceback", "misbehaves.py\", line ", "KeyError: 'missing key'"]),
    ("wrong_type", "", &["returned str 'correct': return a number"]),
    ("no_score", "", &["a dict without \"score\"; it has 'reward'"]),
    ("not_a_number", "", &["the score NaN", "trainer.on_nonfinite=skip"]),
    ("hangs", "reward.timeout=1", &["took longer than 1 s (reward.timeout)", "in hangs"]),
    ("hangs_in_c", "reward.timeout=1", &["took longer than 1 s", "in hangs_in_c"]),
    ("memory_bomb", "", &["MemoryError", "may allocate 8192 MiB (reward.memory_limit_mb)"]),
    ("exits", "", &["its process ended with exit status 7"]),
    ("forks_and_exits", "", &["its process ended with exit status 0"]),
    ("crashes", "", &["its process was killed by signal 11"]),
];

fn misbehaving(run: &Path, does: &str, setting: &str) -> Command {
    let options = [
        "trainer.total_training_steps=3",
        "trainer.save_freq=1",
        "trainer.val_before_train=false",
        "trainer.test_freq=-1",
        "reward.num_workers=2",
        "custom_reward_function.path=tests/data/rewards/misbehaves.py",
    ];
    let since = run.join("global_step_1");
    let mut command = small_run(run, &options);
    command.arg(format!("+custom_reward_function.reward_kwargs.does={does}"));
    command.arg(format!("+custom_reward_function.reward_kwargs.since={}", since.display()));
    command.args(Some(setting).filter(|setting| !setting.is_empty()));
    command
}

fn weights(run: &Path, step: u64) -> Vec<u8> {
    fs::read(run.join(format!("global_step_{step}/actor/huggingface/model.safetensors"))).unwrap()
}

/// Returns the message of a run that ends with exit code 1 at its second step, after saving the first.
fn message(mut command: Command, run: &Path, undisturbed: &Path) -> String {
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().filter(|line| line.starts_with("error: step 2: ")).count(), 1, "{message}");
    assert!(message.contains("the state after step 1 is saved; the same command resumes from"), "{message}");
    assert!(weights(run, 1) == weights(undisturbed, 1), "other weights");
    assert_eq!(text(run).lines().count(), 1, "half a step was written");
    message
}

#[test]
fn a_function_that_misbehaves_costs_no_training_state() {
    let folder = tempfile::tempdir().unwrap();
    let undisturbed = folder.path().join("undisturbed");
    succeed(misbehaving(&undisturbed, "nothing", ""));
    // Printed output is not read as a score.
    let prints = folder.path().join("prints");
    succeed(misbehaving(&prints, "prints", ""));
    assert_eq!(learned(&prints), learned(&undisturbed));
    let at = |does: &str| folder.path().join(does);
    for (does, setting, parts) in MISBEHAVES {
        let message = message(misbehaving(&at(does), does, setting), &at(does), &undisturbed);
        for part in *parts {
            assert!(message.contains(part), "{does}: no {part:?} in\n{message}");
        }
    }
    // A run without periodic saves does not lose its state either.
    let mut never = misbehaving(&at("never"), "raises", "trainer.save_freq=-1");
    never.args(["++custom_reward_function.reward_kwargs.since=/", "trainer.resume_mode=resume_path"]);
    never.arg(format!("trainer.resume_from_path={}", undisturbed.join("global_step_1").display()));
    let messages = String::from_utf8(never.output().unwrap().stderr).unwrap();
    assert!(
        messages.contains("the state after step 1 is saved; the same command with trainer.resume_mode=auto resumes"),
        "{messages}"
    );
    assert!(weights(&at("never"), 1) == weights(&undisturbed, 1), "other weights");
    // Once the cause is removed, the same command resumes, and ends like an undisturbed run.
    let run = at("raises");
    succeed(misbehaving(&run, "nothing", ""));
    assert_eq!(learned(&run), learned(&undisturbed));
    assert!(weights(&run, 3) == weights(&undisturbed, 3));
}

#[test]
fn failures_may_be_abstained_from_or_valued_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, does: &str, options: &[&str]| {
        let at = folder.path().join(name);
        let mut command = misbehaving(&at, does, "");
        command.args(options);
        (succeed(command), rows(&at)[1].1.clone())
    };
    let (output, row) = run("abstain", "raises", &["reward.on_error=abstain"]);
    assert_eq!((row["reward/exceptions"].as_f64(), row["reward/abstained_ratio"].as_f64()), (Some(32.0), Some(1.0)));
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("32 rewards failed and count as no opinion") && messages.contains("KeyError"), "{messages}");
    let (_, row) = run("value", "exits", &["reward.on_error=value", "reward.error_value=-2"]);
    assert_eq!((row["reward/crashes"].as_f64(), row["critic/score/mean"].as_f64()), (Some(32.0), Some(-2.0)));
}

#[test]
fn files_that_cannot_be_called_are_refused_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |options: &[&str]| {
        let mut command = small_run(&folder.path().join("run"), &["actor_rollout_ref.model.path=no/such/model"]);
        let output = command.args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let path = format!("custom_reward_function.path={RULE}");
    for (options, parts) in [
        (&["custom_reward_function.path=no/such.py"][..], &["no/such.py"][..]),
        (&[&path, "custom_reward_function.name=compute_scores"], &["has no compute_scores", "Did you mean \"compute_score\"?"]),
        (
            &["custom_reward_function.path=tests/data/rewards/slow.py", "reward.start_timeout=1"],
            &["longer than 1 s", "start_timeout"],
        ),
        (&[&path, "reward_model.reward_manager=batch"], &["does not take", "reward_manager=naive"]),
        (&[&path, "reward.python=no-such-python"], &["no-such-python"]),
        (&[&path, "+custom_reward_function.reward_kwargs.colour=red"], &["does not take colour"]),
    ] {
        let message = refused(options);
        for part in parts {
            assert!(message.contains(part), "{options:?}: no {part:?} in\n{message}");
        }
    }
    assert!(!folder.path().join("run").exists());
}

#[test]
fn responses_in_a_file_are_scored_by_the_same_functions() {
    let folder = tempfile::tempdir().unwrap();
    let (path, scores) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    let row = |answers: &[&str], truth: &str| serde_json::json!({"data_source": "mine", "prompt": "2+2=", "responses": answers, "reward_model": {"ground_truth": truth}});
    fs::write(&path, format!("{}\n{}\n", row(&["4", "5 "], "4"), row(&["7"], "7"))).unwrap();
    let eval = |options: &[&str]| {
        let mut command = trainer(&["eval", &format!("data.path={}", path.display())]);
        command.arg(format!("data.output_path={}", scores.display())).args(options);
        serde_json::from_slice::<Value>(&succeed(command).stdout).unwrap()
    };
    let file = format!("custom_reward_function.path={RULE}");
    for name in ["compute_score", "with_parts", "batch", "reward_func"] {
        let printed = eval(&[&file, &format!("custom_reward_function.name={name}")]);
        assert_eq!(printed, serde_json::json!({"test_score/mine": 0.75}), "{name}");
        let lines = fs::read_to_string(&scores).unwrap();
        let messages: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let score: Vec<_> =
            messages.iter().map(|line| (line["row"].as_u64(), line["response"].as_u64(), line["score"].as_f64())).collect();
        assert_eq!(
            score,
            [(Some(0), Some(0), Some(1.0)), (Some(0), Some(1), Some(0.0)), (Some(1), Some(0), Some(1.0))],
            "{name}"
        );
    }
    assert_eq!(
        serde_json::from_str::<Value>(fs::read_to_string(&scores).unwrap().lines().next().unwrap()).unwrap()["data_source"],
        "mine"
    );
}

/// A stub of math-verify that accepts nothing.
const VERIFIER: [(&str, &str); 3] = [
    ("latex2sympy2_extended.py", "NormalizationConfig = dict\n"),
    ("math_verify/errors.py", "class TimeoutException(Exception):\n    pass\n"),
    (
        "math_verify/__init__.py",
        "ExprExtractionConfig = LatexExtractionConfig = dict\nparse = lambda *given, **more: []\nverify = lambda *given, **more: False\n",
    ),
];

/// A model that repeats itself opens brackets without end. Its responses are wrong, and are written to every output.
#[test]
fn responses_that_nest_without_end_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    for (file, code) in VERIFIER {
        let place = folder.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, code).unwrap();
    }
    let loops = ["(", "-", "{", "[", "2**", "(1+", "\\left(", "\\frac{", "\\sqrt{", "\\text{", "\\boxed{", "(\\pi", "-\\pi"];
    let texts: Vec<String> =
        loops.iter().flat_map(|text| [text.repeat(100_000), format!("\\boxed{{{}", text.repeat(100_000))]).collect();
    let sources = ["numina_olympiads", "hiyouga/geometry3k", "HuggingFaceH4/MATH-500", "math_dapo", "openai/gsm8k"];
    let row = |source: &&str| serde_json::json!({"data_source": source, "responses": texts, "reward_model": {"ground_truth": "\\frac{1}{2}"}});
    let (path, output) = (folder.path().join("rows.jsonl"), folder.path().join("output"));
    fs::write(&path, sources.iter().map(|source| format!("{}\n", row(source))).collect::<String>()).unwrap();
    std::os::unix::fs::symlink("/proc/self/fd/1", &output).unwrap();
    let mut command = trainer(&["eval", &format!("data.path={}", path.display()), "reward.num_workers=2"]);
    command.arg(format!("data.output_path={}", output.display())).env("PYTHONPATH", folder.path());
    let printed = String::from_utf8(succeed(command).stdout).unwrap();
    let scored = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["score"].as_f64());
    let scores: Vec<f64> = scored.collect();
    assert_eq!(scores.len(), sources.len() * texts.len());
    assert!(scores.iter().all(|score| *score <= 0.0) && output.is_symlink());
    let means: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(means["test_score/numina_olympiads"], 0.0);
}

/// Rows for which no response could be scored, and required columns that no row has, are reported before anything is generated:
/// in training, its dry run, validation and `trainer eval`.
#[test]
fn what_rows_lack_is_said_before_the_first_response() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, row: &dyn Fn(usize) -> Value| {
        let path = folder.path().join(name);
        fs::write(&path, (0..8).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
        path.display().to_string()
    };
    let truth = |i: usize, truth: Value| json!({"data_source": "burnish/arithmetic", "prompt": format!("{i}+1="), "reward_model": {"ground_truth": truth}, "responses": [(i + 1).to_string()]});
    let good = file("good.jsonl", &|i| truth(i, (i + 1).to_string().into()));
    let number = file("number.jsonl", &|i| truth(i, if i < 5 { (i + 1).to_string().into() } else { (i + 1).into() }));
    let own = file("own.jsonl", &|i| match i {
        0 => json!({"prompt": "1+1=", "responses": ["2"]}),
        _ => json!({"prompt": format!("{i}+1="), "solution": (i + 1).to_string(), "responses": [(i + 1).to_string(), "x"]}),
    });
    let by_column = [format!("custom_reward_function.path={RULE}"), "custom_reward_function.name=by_column".to_owned()];
    let run = |name: &str, train: &str, val: &str, more: &[String]| {
        let at = folder.path().join(name);
        let mut command = small_run(&at, STEPS);
        command.arg("trainer.total_training_steps=1").args(more);
        (at, command.arg(format!("data.train_files={train}")).arg(format!("data.val_files={val}")).output().unwrap())
    };
    let refused = |output: &std::process::Output, parts: &[&str]| {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in\n{message}");
        assert!(!message.contains("step 1"), "{message}");
    };
    let messages = ["number.jsonl, row 5 (3 of 8 rows)", "must be text, such as \"6\", not the number 6"];
    refused(&run("train", &number, &good, &[]).1, &[&messages[..], &["data.train_files"]].concat());
    refused(&run("val", &good, &number, &[]).1, &[&messages[..], &["data.val_files"]].concat());
    refused(&run("dry", &good, &number, &["--dry-run=plan".to_owned()]).1, &messages);
    let never = ["trainer.test_freq=-1".to_owned()];
    let (_, unasked) = run("unasked", &good, &number, &never);
    assert!(unasked.status.success(), "nothing is scored against these rows: {unasked:?}");
    let (_, abstains) = run("abstains", &number, &good, &["reward.on_error=abstain".to_owned()]);
    assert!(abstains.status.success() && String::from_utf8_lossy(&abstains.stderr).contains(messages[1]), "{abstains:?}");
    let wants = ["by_column", "`solution`", "the columns are data_source"];
    refused(&run("columns", &good, &own, &by_column).1, &[&wants[..], &["data.train_files", "row 0"]].concat());

    // A column that only some JSON rows have is null in the others, and rows without a data source get a name in the metrics.
    let (at, output) = run("own", &own, &own, &[&by_column[..], &["trainer.val_before_train=true".to_owned()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let validated = &rows(&at)[0].1;
    assert!(validated.contains_key("val-core/unknown/reward/mean@1"), "{:?}", validated.keys());

    let eval = |path: &str, more: &[String]| {
        let mut command = trainer(&["eval", "--config", "config/evaluation.yaml"]);
        command.arg(format!("data.path={path}")).args(more).output().unwrap()
    };
    let output = eval(&number, &[]);
    assert!(
        !output.status.success() && messages.iter().all(|part| String::from_utf8_lossy(&output.stderr).contains(part)),
        "{output:?}"
    );
    let output = eval(&good, &by_column);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains(wants[1]), "{output:?}");
    let output = eval(&own, &by_column);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"test_score/unknown\":0.5"), "{output:?}");
}
