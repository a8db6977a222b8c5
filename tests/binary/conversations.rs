//! Conversations outside an undisturbed training run: `trainer generate`, `trainer eval`, and a run that was killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use burnish::data::rows::read_rows;
use serde_json::{Value, json};

use super::common::{of_task, rows, succeed, trainer};

fn generate(output: &Path, more: &[&str]) -> Vec<Value> {
    let mut command = of_task("generate");
    command.args(["rollout.prompt_length=32", "rollout.response_length=24"]);
    command.arg(format!("data.output_path={}", output.display())).args(more).env("DELAY", "0");
    succeed(command);
    read_rows(&[PathBuf::from(output)], &["responses"], &["messages"]).unwrap().into_iter().map(|row| row.values.into()).collect()
}

fn eval(path: &Path, more: &[&str]) -> Value {
    let mut command = trainer(&["eval"]);
    command.arg(format!("data.path={}", path.display())).args(more);
    serde_json::from_slice(&succeed(command).stdout).unwrap()
}

/// The conversations of a row.
fn conversation(row: &Value) -> Vec<Value> {
    row["messages"].as_array().unwrap().iter().map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap()).collect()
}

#[test]
fn conversations_are_generated_and_scored() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let tools = [
        "data.path=data/calculator/test.parquet",
        "model.path=data/calculator/model",
        "data.n_samples=2",
        "rollout.response_length=48",
        "rollout.multi_turn.enable=true",
        "rollout.multi_turn.tool_config_path=data/calculator/tools.yaml",
    ];
    let rows = generate(&at("a.parquet"), &[&tools[..], &["data.batch_size=64"]].concat());
    generate(&at("b.parquet"), &[&tools[..], &["data.batch_size=17", "rollout.max_num_seqs=7"]].concat());
    assert!(std::fs::read(at("a.parquet")).unwrap() == std::fs::read(at("b.parquet")).unwrap(), "a batch changed a response");
    let all: Vec<Value> = rows.iter().flat_map(conversation).collect();
    assert_eq!(all.len(), 2 * rows.len());
    let has_called =
        |conversation: &Value| conversation["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
    // A text that does not fit into the response is not a turn.
    let has_answer = |conversation: &Value| has_called(conversation) && conversation["end"] != "context_too_long";
    let called = all.iter().filter(|conversation| has_called(conversation)).count();
    assert!(called > all.len() / 10, "{called} conversations of {}", all.len());
    assert!(all.iter().all(|conversation| conversation["end"].is_string() && conversation["score"].is_null()));
    assert!(
        all.iter()
            .filter(|conversation| has_answer(conversation))
            .all(|conversation| conversation["num_turns"].as_u64() >= Some(3))
    );
    let scores = eval(&at("a.parquet"), &[]);
    let score = scores.as_object().unwrap().values().next().unwrap().as_f64().unwrap();
    assert!(score > 0.0 && score < 1.0, "{scores}");

    // Rows scored by their environment need neither a data source nor a ground truth; a configured reward function is not called.
    std::fs::write(at("rows.jsonl"), r#"{"prompt":[{"role":"user","content":"1+2="}],"extra_info":{}}"#).unwrap();
    let rows = format!("data.path={}", at("rows.jsonl").display());
    let game = [
        rows.as_str(),
        "rollout.agent.default_agent_loop=text_environment_agent",
        "rollout.agent.agent_func_path=tests/data/agents/slow.py",
        "reward.pass_env=[DELAY]",
    ];
    let played = generate(&at("game.parquet"), &game);
    let score = conversation(&played[0])[0]["score"].as_f64().unwrap();
    assert_eq!(eval(&at("game.parquet"), &[]), json!({"test_score/unknown": score}));
    // Without agents, the output has no messages.
    assert!(generate(&at("plain.parquet"), &[&rows])[0].get("messages").is_none());
}

/// A tool that never returns the same twice: the run is killed while the tool hangs, and resumes as if it had not been.
#[test]
fn a_resumed_run_asks_nobody_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (run, counted) = (folder.path().join("run"), folder.path().join("counted"));
    let command = |hangs: &str| {
        let mut command = trainer(&["--config", "recipes/calculator/grpo.yaml"]);
        command.arg(format!("trainer.default_local_dir={}", run.display())).args([
            "actor_rollout_ref.rollout.multi_turn.tool_config_path=tests/data/agents/counting.yaml",
            "data.train_batch_size=8",
            "actor_rollout_ref.actor.ppo_mini_batch_size=8",
            "actor_rollout_ref.rollout.n=4",
            "trainer.total_training_steps=4",
            "trainer.save_freq=2",
            "trainer.test_freq=-1",
            "trainer.val_before_train=false",
            "trainer.logger=[file]",
            "reward.pass_env=[COUNTED,HANGS,DELAY]",
            "algorithm.turn_rewards=sum",
        ]);
        command.env("COUNTED", &counted).env("HANGS", hangs).env("DELAY", "0");
        command
    };
    let calls = || std::fs::read_to_string(&counted).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    let mut killed = command("4").spawn().unwrap();
    // Waits until all calls of step 4 have returned, except the calls that hang.
    let mut before = Vec::new();
    loop {
        assert_eq!(killed.try_wait().unwrap(), None, "no call hung");
        sleep(Duration::from_secs(3));
        let now = calls();
        if now.iter().any(|call| call.starts_with("rollout-4-")) && now == before {
            break;
        }
        before = now;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let first = rows(&run);
    assert_eq!(first.len(), 3);

    let output = succeed(command(""));
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("recorded conversations since the checkpoint"), "{messages}");
    let resumed = rows(&run);
    assert_eq!((resumed.len(), &resumed[..3]), (4, &first[..]), "a step is another than it was");
    let after = calls();
    assert!(after.len() > before.len() && after[..before.len()] == before);
    assert_eq!(after.iter().collect::<BTreeSet<_>>().len(), after.len(), "a call was made twice");
    // The recorded conversations are in the last checkpoint.
    assert!(!run.join("conversations-0.record").exists());
}
