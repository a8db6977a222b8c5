//! The work of a run is kept: a resume deletes no best checkpoint, and a new run replaces no record. Settings and files that a
//! checkpoint depends on are compared by value and content, independent of their place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{copy, messages, rows, small_run, succeed, trainer};

/// Every step is saved and validated, and one checkpoint is kept.
const ONE_KEPT: &[&str] = &[
    "trainer.save_freq=1",
    "trainer.test_freq=1",
    "trainer.max_actor_ckpt_to_keep=1",
    "trainer.val_before_train=false",
    "trainer.metric_for_best_model=val-core/burnish/arithmetic/acc/mean@1",
    // An untrained model solves nothing, so the first step is the best.
    "trainer.greater_is_better=false",
];
const SHORT: &[&str] = &["trainer.val_before_train=false", "trainer.test_freq=-1", "data.val_max_samples=8"];
const SAVED: &[&str] = &["trainer.save_freq=1"];
const LORA: &[&str] = &["actor_rollout_ref.model.lora_rank=2"];

/// Returns the message of a command that is refused before it trains.
fn refused(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", messages(&output));
    messages(&output)
}

fn steps(count: usize) -> String {
    format!("trainer.total_training_steps={count}")
}

/// All files of a folder with their contents, except the lock that each process takes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let names = burnish::util::fs::files_under(folder).unwrap();
    names
        .into_iter()
        .filter(|name| !name.ends_with(".lock"))
        .map(|name| (name.clone(), fs::read(folder.join(&name)).unwrap()))
        .collect()
}

fn record(run: &Path, step: u64, name: &str) -> String {
    fs::read_to_string(run.join(format!("global_step_{step}/{name}"))).unwrap()
}

/// Changes of each kind with a different result of the comparison: of a setting, of an ignored setting, of the prompts, of the
/// metric, and of the loaded files.
#[test]
fn a_resume_keeps_the_best_checkpoint_whatever_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let last = steps(3);
    succeed(small_run(&base, &[ONE_KEPT, &[last.as_str()]].concat()));
    let best = fs::read_to_string(base.join("best_checkpointed_iteration.txt")).unwrap();
    let saved = |run: &Path| run.join(format!("global_step_{best}/actor/huggingface/model.safetensors")).is_file();
    assert!(best != "3" && saved(&base), "the last step is the best and proves nothing");
    let ignored = "reward.memory_limit_mb";
    for (name, change, ends) in [
        ("none", "trainer.log_completions=0", false),
        ("ignored", "reward.memory_limit_mb=3000", false),
        ("length", "data.max_response_length=7", true),
        ("prompts", "data.val_max_samples=31", true),
        ("metric", "trainer.metric_for_best_model=val-aux/num_turns/max", true),
        ("loaded", "actor_rollout_ref.actor.checkpoint.load_contents=[model,optimizer]", true),
    ] {
        let run = folder.path().join(name);
        copy(&base, &run);
        for step in [4, 5] {
            let message = messages(&succeed(small_run(&run, &[ONE_KEPT, &[&steps(step), change]].concat())));
            assert!(saved(&run), "{name}, step {step}: the best is gone\n{message}");
            let ended = ends && (step == 4 || name == "loaded");
            assert_eq!(message.contains("stays until you delete it"), ended, "{name}, step {step}: {message}");
            assert!(!message.contains(&format!("changed since the checkpoint: {ignored}")), "{message}");
        }
    }
    // The comparison resumes if its inputs are unchanged.
    for name in ["none", "ignored"] {
        assert_eq!(fs::read_to_string(folder.path().join(name).join("best_checkpointed_iteration.txt")).unwrap(), best, "{name}");
    }
}

#[test]
fn a_value_from_the_environment_is_compared_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let rows = fs::read_to_string("tests/data/sums.jsonl").unwrap();
    let files = ["one", "other"].map(|name| folder.path().join(format!("{name}.jsonl")));
    for (file, rows) in files.iter().zip([rows.clone(), rows.replace("68+12=", "12+68=")]) {
        fs::write(file, rows).unwrap();
    }
    let [one, other] = files.map(|file| file.display().to_string());
    let run = folder.path().join("run");
    let command = |count: usize, seed: &str, rate: &str, file: &str| {
        let hidden = [
            "trainer.seed='${oc.decode:${oc.env:MY_SEED}}'",
            "actor_rollout_ref.actor.optim.lr='${oc.decode:${oc.env:MY_RATE}}'",
            "data.train_files='${oc.env:MY_FILE}'",
        ];
        let mut command = small_run(&run, &[SHORT, SAVED, &hidden, &["data.train_batch_size=4", &steps(count)]].concat());
        command.env("MY_SEED", seed).env("MY_RATE", rate).env("MY_FILE", file);
        command
    };
    succeed(command(1, "1", "1e-3", &one));
    let info: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let recorded = |key: &str| info["config"].as_array().unwrap().iter().find(|one| one["key"] == key).unwrap()["value"].clone();
    assert_eq!(recorded("actor_rollout_ref.actor.optim.lr"), 1e-3);
    assert_eq!((recorded("trainer.seed"), recorded("data.train_files")), (1.into(), one.as_str().into()));
    assert!(record(&run, 1, "config.yaml").contains(&format!("train_files: {one}\n")));
    assert!(refused(command(2, "2", "1e-3", &one)).contains("trainer.seed: 1 -> 2"));
    assert!(refused(command(2, "1", "1e-3", &other)).contains(&format!("data.train_files: {one} -> {other}")));
    let message = messages(&succeed(command(2, "1", "2e-3", &one)));
    assert!(message.contains("actor_rollout_ref.actor.optim.lr: 0.001 -> 0.002"), "{message}");
    // The variables may be missing if the values are given in another way.
    let literal = ["trainer.seed=1", "actor_rollout_ref.actor.optim.lr=2e-3", &format!("data.train_files={one}")];
    let message =
        messages(&succeed(small_run(&run, &[SHORT, SAVED, &literal, &["data.train_batch_size=4", &steps(3)]].concat())));
    assert!(message.contains("resumed from") && !message.contains(" -> 0.002"), "{message}");
}

#[test]
fn a_path_may_be_spelled_otherwise_and_its_content_may_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at = |name: &str| folder.path().join(name);
    copy(&here.join("data/arithmetic/model"), &at("model"));
    fs::copy(here.join("data/arithmetic/train.parquet"), at("train.parquet")).unwrap();
    fs::write(at("reward.py"), "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return 1.0\n")
        .unwrap();
    symlink(at("model"), at("link")).unwrap();
    let of = |name: &str| at(name).display().to_string();
    let run = at("run");
    let command = |count: usize, model: &str, rows: &str, reward: &str| {
        let named = [
            format!("actor_rollout_ref.model.path={model}"),
            format!("data.train_files={rows}"),
            format!("custom_reward_function.path={reward}"),
        ];
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        small_run(&run, &[SHORT, SAVED, LORA, &named, &[&steps(count)]].concat())
    };
    let (model, rows, reward) = (of("model"), of("train.parquet"), of("reward.py"));
    succeed(command(1, &model, &rows, &reward));
    let spelled = |path: &str| path.replace(&folder.path().display().to_string(), &format!("{}/.", folder.path().display()));
    for (count, model, rows, reward) in [
        (2, spelled(&model), format!("[{rows}]"), spelled(&reward)),
        (3, of("link"), spelled(&rows), reward.clone()),
        (4, model.clone(), rows.clone(), reward.clone()),
    ] {
        let message = messages(&succeed(command(count, &model, &rows, &reward)));
        assert!(message.contains("resumed from") && !message.contains("since the checkpoint: data"), "{message}");
        assert!(!message.contains("changed content"), "{message}");
    }
    // Another base under the same name: a resume and an export both refuse it.
    let weights = at("model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 0x40;
    let good = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes).unwrap();
    let message = refused(command(5, &model, &rows, &reward));
    assert!(message.contains("actor_rollout_ref.model.path: content differs"), "{message}");
    let [step, out] = [run.join("global_step_4"), at("out")].map(|path| path.display().to_string());
    let export = trainer(&["export", &step, "--output", &out]).output().unwrap();
    assert!(
        !export.status.success() && messages(&export).contains("is not the base model of the adapter"),
        "{}",
        messages(&export)
    );
    fs::write(&weights, good).unwrap();
    succeed(trainer(&["export", &step, "--output", &out]));
    let parquet = fs::read(at("train.parquet")).unwrap();
    fs::copy(here.join("data/arithmetic/test.parquet"), at("train.parquet")).unwrap();
    assert!(refused(command(5, &model, &rows, &reward)).contains("data.train_files: content differs"));
    fs::write(at("train.parquet"), parquet).unwrap();
    fs::write(at("reward.py"), "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return 0.5\n")
        .unwrap();
    let message = messages(&succeed(command(5, &model, &rows, &reward)));
    assert!(message.contains("custom_reward_function.path: content differs from the checkpoint"), "{message}");
}

#[test]
fn a_new_run_replaces_nothing_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let one = steps(1);
    let command = |run: &Path, more: &[&str]| small_run(run, &[SHORT, &[&one], more].concat());
    let afresh = ["trainer.resume_mode=disable"];
    let bare = at("bare");
    let unsaved = ["trainer.save_freq=null", "algorithm.adv_estimator=rloo"];
    succeed(command(&bare, &unsaved));
    assert!(!bare.join("global_step_1").exists());
    let before = files(&bare);
    let is_complete = |name: &str| format!("this run is in {}", at(name).display());
    // A finished run without a checkpoint can be neither continued nor found complete.
    for (name, more) in [("bare-2", &unsaved[..]), ("bare-3", &afresh)] {
        let message = messages(&succeed(command(&bare, more)));
        assert!(message.contains("has a finished run") && message.contains(&is_complete(name)), "{message}");
        assert_eq!(rows(&at(name)).len(), 1);
    }
    for name in ["bare-4", "bare-5"] {
        let message = messages(&succeed(command(&bare, &afresh)));
        assert!(message.contains(&format!("this run is in {}", at(name).display())), "{message}");
        assert_eq!(rows(&at(name)).len(), 1);
    }
    assert!(files(&bare) == before, "the first run has changed");

    // Checkpoints of another run remain, even if this run keeps few.
    let saved = at("saved");
    succeed(command(&saved, &["trainer.save_freq=1", &steps(2)]));
    let before = files(&saved);
    let few = ["trainer.save_freq=1", "trainer.max_actor_ckpt_to_keep=1"];
    succeed(command(&saved, &[&few[..], &afresh].concat()));
    assert!(at("saved-2/global_step_1").is_dir() && files(&saved) == before);
    let from = format!("trainer.resume_from_path={}", saved.join("global_step_1").display());
    let path = ["trainer.resume_mode=resume_path", &from, &steps(2)];
    let message = refused(command(&at("saved-2"), &[&few[..], &path].concat()));
    assert!(message.contains("and its checkpoints") && message.contains("trainer.resume_mode=auto"), "{message}");

    // A run that was killed before its first save starts again, and its rows stay too.
    let killed = at("killed");
    succeed(command(&killed, &["trainer.save_freq=null"]));
    let mut info: Value = serde_json::from_slice(&fs::read(killed.join("run.json")).unwrap()).unwrap();
    info["state"] = "running".into();
    fs::write(killed.join("run.json"), info.to_string()).unwrap();
    let metrics = fs::read(killed.join("metrics.jsonl")).unwrap();
    let message = messages(&succeed(command(&killed, &["algorithm.adv_estimator=grpo"])));
    let earlier = killed.join(format!("earlier-{}", info["id"].as_str().unwrap()));
    assert!(message.contains(&earlier.display().to_string()), "{message}");
    assert!(fs::read(earlier.join("metrics.jsonl")).unwrap() == metrics && earlier.join("run.json").is_file());
}

/// The rows of README's table: one command with another estimator each time.
#[test]
fn other_settings_are_another_run_and_more_steps_continue_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let one = steps(1);
    let command = |estimator: &str, more: &[&str]| {
        let estimator = format!("algorithm.adv_estimator={estimator}");
        small_run(&at("run"), &[SHORT, &[&one, &estimator], more].concat())
    };
    let estimators = [("rloo", "run"), ("grpo", "run-2"), ("reinforce_plus_plus", "run-3")];
    for (estimator, name) in estimators {
        let message = messages(&succeed(command(estimator, &[])));
        let is_other = message.contains(&format!("this run is in {} (its settings differ", at(name).display()));
        assert_eq!(is_other, name != "run", "{message}");
        assert!(at(name).join("global_step_1").is_dir(), "the last step of {name} is not saved");
    }
    let before: Vec<_> = estimators.iter().map(|(_, name)| files(&at(name))).collect();
    // Repeating a command finds its own run complete; settings that only change the output do not make a new run.
    for (estimator, _) in estimators {
        assert!(messages(&succeed(command(estimator, &["trainer.log_completions=0"]))).contains("all 1 steps are done"));
    }
    assert!(before == estimators.iter().map(|(_, name)| files(&at(name))).collect::<Vec<_>>(), "a finished run has changed");
    let mut dry = command("opo", &[]);
    dry.arg("--dry-run");
    assert!(messages(&succeed(dry)).contains(&at("run-4").display().to_string()) && !at("run-4").exists());
    for (estimator, name) in &estimators[..2] {
        let message = messages(&succeed(command(estimator, &[&steps(2)])));
        assert!(message.contains("resumed from") && at(name).join("global_step_2").is_dir(), "{message}");
    }
}

#[test]
fn the_best_and_the_last_step_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // An untrained model solves nothing, and its responses have arbitrary lengths, so the metric decides which step is best.
    let settings = ["trainer.test_freq=1", "trainer.metric_for_best_model=val-aux/num_turns/max", &steps(4)];
    succeed(small_run(&run, &[&settings[..], &["trainer.val_before_train=false", "data.val_max_samples=8"]].concat()));
    let saved = |step: u64| run.join(format!("global_step_{step}")).is_dir();
    let best: u64 = fs::read_to_string(run.join("best_checkpointed_iteration.txt")).unwrap().parse().unwrap();
    assert_eq!([1, 2, 3, 4].map(saved), [1, 2, 3, 4].map(|step| step == best || step == 4));
    // One line names the size of the checkpoints.
    let dry = trainer(&["--config", "ppo_trainer.yaml", "--dry-run=plan"]).output().unwrap();
    let report = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(report.contains("MiB each; the last and the best stay = "), "{report}");
}

/// Each file of a run, and its checkpoint, becomes a link to a copy, as another user of the folder or a store of data could make it.
/// The run resumes and changes no copy. The manifest has the largest counter.
#[test]
fn a_run_follows_no_link_and_counts_on() {
    let folder = tempfile::tempdir().unwrap();
    let (run, store) = (folder.path().join("run"), folder.path().join("store"));
    let saved = [SAVED, SHORT, &["trainer.max_actor_ckpt_to_keep=1"]].concat();
    let steps = |steps: &str| succeed(small_run(&run, &[&saved[..], &[steps]].concat()));
    steps("trainer.total_training_steps=1");
    succeed(trainer(&["report", run.to_str().unwrap()]));
    let manifest = run.join("global_step_1/manifest.json");
    let mut listed: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    listed["sequence"] = u64::MAX.into();
    fs::write(&manifest, listed.to_string()).unwrap();
    fs::rename(&run, &store).unwrap();
    copy(&store, &folder.path().join("before"));
    fs::create_dir(&run).unwrap();
    let names: Vec<String> =
        fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter().for_each(|name| symlink(store.join(name), run.join(name)).unwrap());

    steps("trainer.total_training_steps=2");
    succeed(trainer(&["report", run.to_str().unwrap()]));
    for name in &names {
        let same = Command::new("diff").arg("-r").arg(store.join(name)).arg(folder.path().join("before").join(name)).output();
        assert_eq!(String::from_utf8_lossy(&same.unwrap().stdout), "", "{name}: the target of the link");
        assert!(!run.join(name).is_symlink(), "{name}");
    }
    assert!(run.join("global_step_2").is_dir() && !run.join("global_step_1").exists(), "the newest stays");
}
