//! Output for programs: `--json` of every listing, schemas, the self-check, the action of GitHub, and the files for clouds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::cli::LISTINGS;
use burnish::config::kinds::KINDS;
use serde_json::{Value, json};

use crate::common::{SMALL, small_run, succeed, trainer};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of a command with `--json`, and its exit code.
fn rows(words: &[&str], folder: &Path) -> (Vec<Value>, Option<i32>) {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let words = [&words[..end], &["--json"], &words[end..]].concat();
    let output = trainer(&words).current_dir(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{words:?}: {error}: {line}"));
    (text.lines().map(row).collect(), output.status.code())
}

/// Two runs of two steps, `a` and `b`, that differ in a setting.
fn runs(folder: &Path) {
    for (name, estimator) in [("a", "grpo"), ("b", "rloo")] {
        succeed(small_run(
            &folder.join(name),
            &[&format!("algorithm.adv_estimator={estimator}"), "trainer.total_training_steps=2"],
        ));
    }
}

/// Each command prints at least one row, and every row has exactly the keys of the table.
#[test]
fn every_listing_prints_rows_with_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    runs(folder.path());
    let row =
        json!({"data_source": "openai/gsm8k", "prompt": "q", "responses": ["#### 2"], "reward_model": {"ground_truth": "2"}});
    std::fs::write(folder.path().join("rows.jsonl"), row.to_string()).unwrap();
    let of: BTreeMap<&str, (&[&str], i32)> = BTreeMap::from([
        ("bisect", (&["a", "--metric", "actor/lr", "--bad", ">0"][..], 0)),
        ("config diff", (&["ppo_trainer", "ppo_trainer data.seed=7"][..], 1)),
        ("config explain", (&["kl"][..], 0)),
        ("devices", (&[][..], 0)),
        ("doctor", (&["a"][..], 0)),
        ("from-openrlhf", (&["--", "python3", "-m", "openrlhf.cli.train_sft", "--pretrain", "m", "--dataset", "d"][..], 1)),
        ("from-trl", (&["--", "trl", "sft", "--model_name_or_path", "m", "--dataset_name", "d"][..], 1)),
        ("from-verl", (&["python3 -m verl.trainer.main_ppo data.train_files=x.parquet"][..], 1)),
        ("replay", (&["a", "--step", "1"][..], 0)),
        ("reward check", (&["gsm8k", "--rows", "rows.jsonl"][..], 0)),
        ("recipes", (&[][..], 0)),
        ("runs diff", (&["a", "b"][..], 0)),
        ("runs ls", (&["."][..], 0)),
        ("runs samples", (&["a"][..], 0)),
        ("runs show", (&["a"][..], 0)),
        ("self-check", (&["--folder", "."][..], 0)),
    ]);
    for listing in LISTINGS {
        // The tests of downloads have their own server.
        let Some((words, code)) = of.get(listing.command).filter(|_| listing.command != "fetch") else {
            assert_eq!(listing.command, "fetch", "a listing without a test");
            continue;
        };
        let words: Vec<&str> = listing.command.split(' ').chain(words.iter().copied()).collect();
        let (rows, ended) = rows(&words, folder.path());
        assert_eq!((ended, rows.is_empty()), (Some(*code), false), "{words:?}");
        for row in rows {
            let mut keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
            keys.sort_unstable();
            // A reward function adds its own keys.
            keys.retain(|key| listing.keys().contains(key) || listing.command != "reward check");
            assert_eq!(keys, listing.keys(), "{words:?}");
        }
    }
    let (found, _) = rows(&["runs", "diff", "a", "b"], folder.path());
    let estimator = json!({"of": "setting", "key": "algorithm.adv_estimator", "a": "grpo", "b": "rloo"});
    assert!(found.contains(&estimator), "{found:?}");
    let (found, _) = rows(&["config", "explain", "algorithm.adv_estimator"], folder.path());
    assert!(found.len() == 1 && found[0]["takes"].as_str().unwrap().contains(" | rloo"), "{found:?}");
    assert_eq!(rows(&["config", "diff", "ppo_trainer", "ppo_trainer"], folder.path()), (vec![], Some(0)));
    action(folder.path());
}

#[test]
fn a_problem_of_the_machine_is_told_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = trainer(&["self-check", "--python", "/no/such/python"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let problems: Vec<&str> = text.lines().filter(|line| line.starts_with("problem")).collect();
    assert!(problems.len() == 1 && problems[0].contains("reward.python=PATH"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("ok       kernels")), "{text}");
}

/// The doctor's exit code says if it found a fault, or cannot read; its text has number and remedy, in the library's names.
#[test]
fn a_fault_of_a_run_is_told_with_advice() {
    let runs = root().join("tests/data/doctor");
    let run = runs.join("trl/healthy-grpo");
    for word in ["data.seed=1", "--sample=3"] {
        let output = trainer(&["doctor", run.to_str().unwrap(), word]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.contains("is for a configuration")), (Some(2), true), "{word}: {text}");
    }
    for (source, code, parts) in [
        ("trl/healthy-grpo", 0, &["pass (", "not applicable ("][..]),
        ("trl/never-ends-grpo/trainer_state.json", 1, &["fail  responses cut", "of 1 tokens", "Raise max_completion_length"]),
        (
            "verl/kl-blow-up.jsonl",
            1,
            &["fail  KL", "actor_rollout_ref.actor.optim.lr", "trainer doctor --explain constant-reward "],
        ),
        ("README.md", 2, &["trainer_state.json (TRL)"]),
        ("no-such-run", 2, &["no-such-run"]),
    ] {
        let output = trainer(&["doctor", runs.join(source).to_str().unwrap()]).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{source}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{source}: {text}");
    }
}

/// The program has the page of each check, for any folder and without a network.
#[test]
fn the_doctor_explains_its_checks() {
    let folder = tempfile::tempdir().unwrap();
    let explain = |names: &[&str]| {
        let output = trainer(&["doctor", "--explain"]).args(names).current_dir(folder.path()).output().unwrap();
        (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
    };
    let written = |id: &str| std::fs::read_to_string(root().join(format!("docs/checks/{id}.md"))).unwrap();
    assert_eq!(explain(&["no-signal"]), (Some(0), written("no-signal")));
    assert_eq!(explain(&["no signal", "kl"]), (Some(0), format!("{}\n{}", written("no-signal"), written("kl"))));
    let (code, text) = explain(&["no-signals"]);
    assert!(code == Some(2) && text.contains("no-signal") && text.contains("learning-rate"), "{text}");
}

#[test]
fn schemas_are_those_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("schemas");
    succeed(trainer(&["config", "schema", "--output", output.to_str().unwrap()]));
    for known in KINDS {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(format!("{}.json", known.file))).unwrap();
        assert!(read(&output) == read(&root().join("config/schema")), "{}", known.file);
    }
    let printed = succeed(trainer(&["config", "schema", "sft"])).stdout;
    assert_eq!(printed, std::fs::read(root().join("config/schema/sft_trainer.json")).unwrap());
}

/// The step `Train` of action.yml trains, and leaves a summary and a page; a wrong recipe leaves a summary and its exit code.
fn action(folder: &Path) {
    let action: Value = serde_yaml::from_str(&std::fs::read_to_string(root().join("action.yml")).unwrap()).unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let train = steps.iter().find(|step| step["name"] == "Train").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_trainer"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let run = |config: &str, name: &str| {
        let home = folder.join(name);
        std::fs::create_dir_all(&home).unwrap();
        let mut bash = Command::new("bash");
        // GitHub starts scripts with these options.
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", train["run"].as_str().unwrap()]);
        bash.current_dir(root()).env("PATH", &path).env("RUNNER_TEMP", &home).env("HF_HUB_OFFLINE", "1");
        bash.env("GITHUB_OUTPUT", home.join("output")).env("GITHUB_STEP_SUMMARY", home.join("page"));
        bash.env("CONFIG", config).env("COMMAND", "").env("STEPS", "1");
        let code = bash.env("OVERRIDES", SMALL.join("\n\n")).output().unwrap().status.code();
        (code, home.clone(), std::fs::read_to_string(home.join("page")).unwrap())
    };
    let (code, home, page) = run("arithmetic/first.yaml", "action");
    assert_eq!(code, Some(0), "{page}");
    assert!(page.contains(": finished") && page.contains("| `critic/score/mean` | "), "{page}");
    assert!(home.join("burnish-run/report.html").is_file());
    let (code, _, page) = run("no_such_recipe.yaml", "refused");
    assert!(code == Some(2) && page.contains("exit code 2") && page.contains("no_such_recipe"), "{page}");
}

/// All texts in a value.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(items) => items.values().for_each(|item| texts(item, found)),
        _ => {}
    }
}

/// The files for clouds are YAML or Python, and state that they were never run. Their commands are commands of the program, and
/// their recipes and settings are right.
#[test]
fn files_for_clouds_have_commands_of_the_program() {
    let entries = std::fs::read_dir(root().join("examples/cloud")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end != "md")).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.lines().next().unwrap().contains("Not run."), "{}", file.display());
        let mut found = vec![];
        if file.extension().is_some_and(|end| end == "py") {
            let mut python = Command::new("python3");
            python.args(["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"]).arg(&file);
            assert!(python.status().unwrap().success(), "{}", file.display());
            found.extend(text.lines().map(|line| line.trim().trim_matches([',', '"']).to_owned()));
        } else {
            texts(&serde_yaml::from_str(&text).unwrap(), &mut found);
        }
        let lines = found.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("trainer "));
        let lines: Vec<Vec<&str>> = lines.map(|line| line.split(' ').skip(1).collect()).collect();
        assert_eq!(lines.len(), 3, "{}: {lines:?}", file.display());
        for words in lines {
            let shown = match words[0] {
                "--config" => [&["config", "show"], &words[..]].concat(),
                command => vec!["man", command],
            };
            succeed(trainer(&shown));
        }
    }
}
