//! The user's own agent loops, with the real binary. One that does the same as a built-in loop has bitwise equal results; one
//! that returns tokens that were not sampled gets an error about it.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use super::common::{rows, small_run, succeed, trainer};

/// A function tool of verl in place of the task's own tool.
const TOOL: &[&str] = &[
    "actor_rollout_ref.rollout.multi_turn.tool_config_path=null",
    "actor_rollout_ref.rollout.multi_turn.function_tool_path=tests/data/agents/own_tool.py",
];
const LOOPS: &str = "actor_rollout_ref.rollout.agent.agent_loop_config_path=tests/data/agents/own_loops.yaml";

fn named(name: &str) -> String {
    format!("actor_rollout_ref.rollout.agent.default_agent_loop={name}")
}

/// A short run on multiplications as in the calculator task, in conversations of this loop.
fn calculator(folder: &Path, agent: &str, more: &[&str]) -> Command {
    std::fs::create_dir_all(folder).unwrap();
    let row = |i: u64| {
        let (a, b) = (101 + 37 * i, 11 + 7 * i);
        let prompt = [json!({"role": "user", "content": format!("{a}*{b}=")})];
        let ground_truth = (a * b).to_string();
        json!({"data_source": "burnish/calculator", "prompt": prompt, "reward_model": {"ground_truth": ground_truth}, "agent_name": agent})
    };
    let rows: String = (0..16).map(|i| format!("{}\n", row(i))).collect();
    let file = folder.join("products.jsonl");
    std::fs::write(&file, rows).unwrap();
    let mut command = trainer(&["--config", "recipes/calculator/grpo.yaml"]);
    command.args(["train", "val"].map(|part| format!("data.{part}_files={}", file.display())));
    let short = [
        "data.train_batch_size=8",
        "actor_rollout_ref.rollout.n=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        // The gradient is nonzero for any scores.
        "actor_rollout_ref.actor.entropy_coeff=0.01",
        "trainer.total_training_steps=2",
        "trainer.test_freq=2",
        "trainer.logger=[file]",
    ];
    command.args(short).arg(format!("trainer.default_local_dir={}", folder.display())).args(more);
    command
}

/// The rows of a run without the counts of tool calls, which only the loop itself has.
fn comparable(run: &Path) -> Vec<(u64, Map<String, Value>)> {
    let mut rows = rows(run);
    rows.iter_mut().for_each(|(_, data)| {
        data.retain(|key, _| !["agent/", "tools/", "tool_call_counts/"].iter().any(|own| key.starts_with(own)))
    });
    rows
}

#[test]
fn a_loop_that_does_the_same_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let short = ["trainer.total_training_steps=2", "data.max_response_length=8"];
    succeed(small_run(&at("plain"), &short));
    let one_turn = named("one_turn");
    succeed(small_run(&at("one_turn"), &[&short[..], &[LOOPS, &one_turn]].concat()));
    let (plain, own) = (comparable(&at("plain")), comparable(&at("one_turn")));
    assert_eq!(plain.len(), own.len());
    for ((_, plain), (_, own)) in plain.iter().zip(&own) {
        let differs = plain.iter().find(|(key, value)| own.get(*key) != Some(value));
        assert!(differs.is_none(), "{differs:?}, {own:?}");
    }

    succeed(calculator(&at("built_in"), "tool_agent", TOOL));
    succeed(calculator(&at("react"), "react", &[TOOL, &[LOOPS]].concat()));
    assert_eq!(comparable(&at("built_in")), comparable(&at("react")));
}

#[test]
fn a_loop_may_score_itself_and_sample_as_it_likes() {
    let folder = tempfile::tempdir().unwrap();
    succeed(calculator(
        folder.path(),
        "scored",
        &[LOOPS, &named("scored"), "actor_rollout_ref.rollout.multi_turn.tool_config_path=null"],
    ));
    for (_, data) in rows(folder.path()).iter().filter(|(step, _)| *step > 0) {
        let number = |name: &str| data.get(name).unwrap_or_else(|| panic!("{name} in {data:?}")).as_f64().unwrap();
        assert!(number("response_length/max") <= 3.0 && number("response_length/min") >= 1.0);
        assert!((number("critic/score/mean") - 0.25 * number("response_length/mean")).abs() < 1e-6, "{data:?}");
    }
}

#[test]
fn what_a_loop_cannot_do_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (inexact, asking, unknown) = (named("inexact"), named("asking"), named("no_such_loop"));
    for (settings, message) in [
        (&[LOOPS, &inexact][..], "the agent loop inexact: response_mask has 1 for the tokens 0 to"),
        (&[LOOPS, &asking], "guided_regex"),
        (
            &[LOOPS, &unknown],
            "the loops are single_turn_agent, tool_agent, environment_agent, text_environment_agent, server_agent, one_turn, react",
        ),
        (&[LOOPS], "no row asks for one_turn or react"),
        (&["actor_rollout_ref.rollout.agent.agent_loop_config_path=tests/data/agents/loops.yaml"], "my_loops"),
    ] {
        let short = ["trainer.total_training_steps=1", "data.max_response_length=8"];
        let output = small_run(&folder.path().join("run"), &[&short[..], settings].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{settings:?}: {error}");
    }
}
