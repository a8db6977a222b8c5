//! Foreign texts with terminal control sequences: every command escapes them, and the program's own colours survive.

use std::fs;
use std::path::Path;
use std::process::Output;

use burnish::run::{RecordedSetting, RunInfo, RunState};
use serde_json::json;

use crate::common::{small_run, succeed, trainer};

/// Sequences that clear the screen, set a title, return to the line's start, ring the bell, an 8-bit sequence, and right-to-left
/// override.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}ok\rfake \u{9b}31m\u{202e}gpj";
const SHOWN: &str = r"\u{1b}[2J\u{1b}]0;mine\u{7}ok\rfake \u{9b}31m\u{202e}gpj";

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap())
}

/// Returns the control characters of a text, without the sequences of our own colours.
fn obeyed(text: &str) -> Vec<char> {
    let plain = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[3m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
    let text = plain.iter().fold(text.to_owned(), |text, code| text.replace(code, ""));
    text.chars().filter(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}').collect()
}

#[test]
fn errors_and_lists_show_what_others_wrote_and_do_not_obey_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(small_run(&run, &["trainer.total_training_steps=1", "trainer.val_before_train=false", "trainer.test_freq=-1"]));
    let info = run.join("run.json");
    let mut recorded: serde_json::Value = serde_json::from_str(&fs::read_to_string(&info).unwrap()).unwrap();
    for field in ["project", "experiment", "model", "device", "error"] {
        recorded[field] = json!(HOSTILE);
    }
    fs::write(&info, recorded.to_string()).unwrap();
    let model = folder.path().join(HOSTILE);
    fs::create_dir(&model).unwrap();
    let rows = folder.path().join("rows.jsonl");
    fs::write(&rows, json!({"prompt": HOSTILE, HOSTILE: 1}).to_string()).unwrap();
    let (run, model, rows) = (run.to_str().unwrap(), model.to_str().unwrap(), rows.to_str().unwrap());
    for (name, args) in [
        ("a name of a run", &["runs", "show", run][..]),
        ("a list of runs", &["runs", "ls", folder.path().to_str().unwrap()]),
        ("a missing file", &["--config", HOSTILE]),
        ("a folder", &["serve-rm", "--model", model]),
        ("an override", &[&format!("trainer.total_epochs={HOSTILE}")]),
        (
            "a data file",
            &["--dry-run=plan", "--config", "arithmetic/first.yaml", &format!("data.train_files={rows}"), "data.prompt_key=none"],
        ),
    ] {
        for colours in [false, true] {
            let mut command = trainer(args);
            if colours {
                command.env("CLICOLOR_FORCE", "1");
            }
            let [out, err] = texts(&command.output().unwrap());
            assert!(obeyed(&out).is_empty() && obeyed(&err).is_empty(), "{name}: {out:?} {err:?}");
            assert!([&out, &err].iter().any(|text| text.contains(r"\u{1b}]0;mine")), "{name}: {out:?} {err:?}");
        }
    }
}

/// A run of others may have names, values and lists of any length; each listing shows a bounded part of them.
#[test]
fn listings_of_runs_show_a_part_of_what_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        let long = |c: &str| format!("{name}{}", c.repeat(1_000_000));
        let value = |i: usize| if i == 0 { long("v").into() } else { json!(format!("{name}{i}")) };
        let settings = (0..3000).map(|i| RecordedSetting { key: format!("key{i}"), value: value(i), from: "x".into() });
        let info = RunInfo {
            model: long("x"),
            error: Some(long("e")),
            phase: Some(long("p")),
            command: vec!["trainer".to_owned(), long("c")],
            config: settings.collect(),
            state: RunState::Failed,
            started: 1.0,
            ..RunInfo::new(&long("k"), &long("o"), &long("n"))
        };
        fs::create_dir(at(name)).unwrap();
        info.write(Path::new(&at(name))).unwrap();
        let metrics: serde_json::Map<_, _> =
            (0..3000).map(|i| (format!("m{i}"), json!(1))).chain([(long("m"), json!(2))]).collect();
        fs::write(format!("{}/metrics.jsonl", at(name)), format!("{}\n", json!({"step": 1, "data": metrics}))).unwrap();
    }
    let above = folder.path().to_str().unwrap();
    for args in [&["runs", "ls", above][..], &["runs", "show", &at("a")], &["runs", "diff", &at("a"), &at("b")]] {
        let [out, err] = texts(&trainer(args).output().unwrap());
        assert!(out.contains('…') && err.len() < 30_000, "{args:?}: {out:.2000} {err:.2000}");
        let longest = out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(out.len() < 400_000 && longest < 10_100, "{args:?}: {} bytes, a line of {longest}", out.len());
    }
}

#[test]
fn a_reward_function_does_not_command_the_terminal_or_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reward.py");
    let code = format!(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    raise ValueError({HOSTILE:?})\n"
    );
    let code =
        code.replace("\\u{1b}", "\\x1b").replace("\\u{7}", "\\x07").replace("\\u{9b}", "\\x9b").replace("\\u{202e}", "\\u202e");
    fs::write(&file, code).unwrap();
    let run = folder.path().join("run");
    let mut command = small_run(&run, &["trainer.val_before_train=false"]);
    command.arg(format!("custom_reward_function.path={}", file.display())).env("CLICOLOR_FORCE", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let [out, err] = texts(&output);
    let log = fs::read_to_string(run.join("trainer.log")).unwrap();
    for text in [&out, &err, &log] {
        assert!(obeyed(text).is_empty(), "{text:?}");
    }
    assert!(err.contains(SHOWN) && log.contains(SHOWN), "{err}");
    // The program's own colours appear where they were asked for.
    assert!(err.contains("\u{1b}[32m") && !log.contains('\u{1b}'), "{err:?}");
}
