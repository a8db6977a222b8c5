//! Rows and settings that name different loops: a loop that is set up and never runs is an error at the start, also in a dry run.

use super::common::trainer;

/// A dry run on the rows of the calculator task, which all have `agent_name: tool_agent`, without the task's tool.
const ROWS: &[&str] = &[
    "--config",
    "recipes/calculator/grpo.yaml",
    "--dry-run=plan",
    "actor_rollout_ref.rollout.multi_turn.enable=false",
    "actor_rollout_ref.rollout.multi_turn.tool_config_path=null",
    "actor_rollout_ref.rollout.agent.default_agent_loop=single_turn_agent",
];
const TOOLS: &str = "actor_rollout_ref.rollout.multi_turn.tool_config_path=data/calculator/tools.yaml";
const REMEDY: &str = "actor_rollout_ref.rollout.agent.read_agent_name=false";

/// Each loop except the loop of the rows: its name, its settings, and the key that would have no reader.
const LOOPS: &[(&str, &[&str], &str)] = &[
    ("server_agent", &["agent.server.path=tests/data/agents/program.py"], "agent.server.path"),
    (
        "environment_agent",
        &["agent.environment.path=tests/data/agents/toy.py", "agent.environment.name=Toy"],
        "agent.environment.path",
    ),
    ("text_environment_agent", &["agent.agent_func_path=tests/data/agents/goes_on.py"], "agent.agent_func_path"),
    ("one_turn", &["agent.agent_loop_config_path=tests/data/agents/own_loops.yaml"], "agent.agent_loop_config_path"),
];

/// Runs with the settings; returns the exit code and stderr.
fn run(settings: &[&str]) -> (Option<i32>, String) {
    let output = trainer(&[ROWS, settings].concat()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_no_row_asks_for_is_an_error() {
    for (name, settings, key) in LOOPS {
        let default = format!("agent.default_agent_loop={name}");
        let all = [&[&*default], *settings].concat();
        let all: Vec<String> = all.iter().map(|setting| format!("actor_rollout_ref.rollout.{setting}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        // The loop of the rows has no tools to call.
        let (code, messages) = run(&all);
        let parts = ["agent_name is tool_agent, which has nothing to call", "row 0", REMEDY, name];
        assert!(code == Some(2) && parts.iter().all(|part| messages.contains(part)), "{name}: {code:?} {messages}");
        // This loop has tools to call, and the other loop never runs.
        let (code, messages) = run(&[&all[..], &[TOOLS]].concat());
        let parts = [key, "no row asks for", "(tool_agent)", REMEDY];
        assert!(code == Some(2) && parts.iter().all(|part| messages.contains(part)), "{name}: {code:?} {messages}");
        let (code, messages) = run(&[&all[..], &[REMEDY]].concat());
        assert_eq!(code, Some(0), "{name}: {messages}");
    }
}

/// Rows that name tools, without any settings for tools.
#[test]
fn rows_with_nothing_to_call_are_an_error() {
    let (code, messages) = run(&[]);
    let parts = ["agent_name is tool_agent, which has nothing to call", "row 0", "multi_turn.tool_config_path=FILE", REMEDY];
    assert!(code == Some(2) && parts.iter().all(|part| messages.contains(part)), "{code:?} {messages}");
    let (code, messages) = run(&[REMEDY]);
    assert_eq!(code, Some(0), "{messages}");
}
