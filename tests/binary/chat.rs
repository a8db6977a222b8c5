//! `trainer chat`: one answer in a pipe, a dialogue in a terminal, tools, and mistakes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{small_run, succeed, trainer};
use crate::serve::Server;

const MODEL: &str = "data/arithmetic/model";

fn started(mut command: Command, input: &str) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

fn chat(args: &[&str], input: &str) -> Output {
    started(trainer(&[&["chat"], args].concat()), input).wait_with_output().unwrap()
}

/// Returns what a chat prints to standard output in a pipe.
fn answer(args: &[&str], input: &str) -> String {
    let output = chat(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The greedy answer of a chat equals the answer of `serve`, with and without the template, and so does a sampled answer with the
/// same seed.
#[test]
fn a_chat_answers_as_the_server_does() {
    let server = Server::start(&["--seed", "7"]);
    let text = |api: &str, body: &Value| {
        let reply = server.json(api, body);
        let choice = &reply["choices"][0];
        choice.get("text").unwrap_or(&choice["message"]["content"]).as_str().unwrap().to_owned()
    };
    let sampled = text("/chat/completions", &json!({"messages": [{"role": "user", "content": "12+7="}], "temperature": 1.5}));
    assert_eq!(answer(&[MODEL, "--temperature", "1.5", "--seed", "7"], "12+7=\n"), format!("{sampled}\n"));
    let greedy = text("/chat/completions", &json!({"messages": [{"role": "user", "content": "12+7="}], "temperature": 0}));
    assert_eq!(answer(&[MODEL], "12+7=\n"), format!("{greedy}\n"));
    let raw = text("/completions", &json!({"prompt": "12+7=", "temperature": 0}));
    assert_eq!(answer(&[MODEL, "--raw"], "12+7="), format!("{raw}\n"));
    let short = text("/completions", &json!({"prompt": "12+7=", "temperature": 0, "max_tokens": 1}));
    assert_eq!(answer(&[MODEL, "--raw", "--max-tokens", "1"], "12+7="), format!("{short}\n"));
    let stopped = answer(&[MODEL, "--raw", &format!("rollout.stop=['{short}']")], "12+7=");
    assert_eq!(stopped, format!("{short}\n"), "a stop text ends an answer and stays in it");
}

/// The folder of a run, and the folder of a checkpoint, name the model that was trained.
#[test]
fn a_run_answers() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let steps =
        ["trainer.total_training_steps=1", "trainer.save_freq=1", "trainer.val_before_train=false", "trainer.test_freq=-1"];
    succeed(small_run(&run, &steps));
    let checkpoint = run.join("global_step_1");
    let of = |folder: &Path| answer(&[folder.to_str().unwrap(), "--raw"], "12+7=");
    let direct = of(&checkpoint.join("actor/huggingface"));
    assert_eq!((of(&run), of(&checkpoint)), (direct.clone(), direct));
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    for (args, input, part) in [
        (&[missing.to_str().unwrap()][..], "x", "none"),
        (&["rollout.temperature=1"], "x", "the first word must be the model"),
        (&[MODEL, "data.path=x.parquet"], "x", "a chat reads no rows"),
        (&[MODEL, "model.path=x"], "x", "the first word names the model"),
        (&[MODEL, "rollout.temperatur=1"], "x", "rollout.temperature"),
        (&[MODEL, "--temperature", "-1"], "x", "temperature"),
        (&[MODEL, "--raw", "--system", "Be brief."], "x", "--system would have no effect"),
        (&[MODEL, "--tools", missing.to_str().unwrap()], "x", "none"),
        (&[MODEL, "rollout.multi_turn.interaction_config_path=x.yaml"], "x", "you are the user"),
    ] {
        let output = chat(args, input);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {messages}");
        assert!(messages.contains(part) && output.stdout.is_empty(), "{args:?}: {messages}");
    }
    let empty = chat(&[MODEL], "");
    assert!(empty.status.code() == Some(2) && String::from_utf8_lossy(&empty.stderr).contains("standard input is empty"));
}

/// A model trained to use a calculator calls it; in a pipe, the call and its result are notes on standard error.
#[test]
fn tools_are_called() {
    let output = chat(&["data/calculator/model", "--tools", "data/calculator/tools.yaml"], "12 * 34");
    let [messages, notes] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success() && notes.contains("→ calculator({\"expression\": ") && notes.contains("\n← "), "{notes}");
    assert!(
        !messages.contains(['→', '←', '\u{1b}']) && messages.lines().count() == 1,
        "standard output has the answer alone: {messages}"
    );
}

/// A chat in a terminal (of Python's module pty): commands, a saved chat, Ctrl-C within an answer, Ctrl-D. Skipped without
/// Python.
#[test]
fn a_dialogue_in_a_terminal() {
    let Ok(python) = Command::new("python3").arg("--version").output().map(|_| "python3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.jsonl");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/dialogue.py");
    let output = Command::new(python)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([script.to_str().unwrap(), env!("CARGO_BIN_EXE_trainer"), MODEL, file.to_str().unwrap()])
        .output()
        .unwrap();
    let messages = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{messages}");
    let row: Value = serde_json::from_str(fs::read_to_string(&file).unwrap().trim()).unwrap();
    let roles: Vec<&str> = row["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant"], "{messages}");
}

/// Ctrl-C ends an answer in a pipe with exit code 3.
#[test]
fn a_signal_stops_an_answer() {
    let long = ["chat", MODEL, "--raw", "--max-tokens", "900", "rollout.ignore_eos=true", "--temperature", "1"];
    let child = started(trainer(&long), "1+2=");
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    // On a fast machine, the answer may already have ended.
    let code = output.status.code();
    assert!([Some(3), Some(0)].contains(&code), "{code:?} {}", String::from_utf8_lossy(&output.stderr));
}
