//! Conversations of many turns with the real binary: a slow environment in a Python file, a server of tools, and settings that a
//! run refuses.

use burnish::agent::EndReason;
use serde_json::json;

use super::common::{rows, small_run, succeed, text, trainer};

const GAME: &[&str] = &[
    "actor_rollout_ref.rollout.agent.default_agent_loop=text_environment_agent",
    "actor_rollout_ref.rollout.agent.agent_func_path=tests/data/agents/slow.py",
    "data.max_response_length=24",
    "reward.pass_env=[DELAY]",
    "trainer.total_training_steps=2",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
];

/// Runs whose environments take different times are equal, and so is a run that was stopped and resumed.
#[test]
fn an_environment_may_take_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, delay: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let mut command = small_run(&path, &[GAME, more].concat());
        command.env("DELAY", delay);
        succeed(command);
        path
    };
    let quick = run("quick", "0", &["trainer.save_freq=1"]);
    let slow = run("slow", "0.02", &["actor_rollout_ref.rollout.max_num_seqs=5"]);
    assert_eq!(text(&quick), text(&slow));
    std::fs::remove_dir_all(quick.join("global_step_2")).unwrap();
    std::fs::write(quick.join("latest_checkpointed_iteration.txt"), "1").unwrap();
    let resumed = run("quick", "0.01", &["trainer.save_freq=1"]);
    assert_eq!(text(&resumed), text(&slow));

    let rows = rows(&slow);
    assert_eq!(rows.len(), 2);
    for (_, data) in &rows {
        let number = |name: &str| data.get(name).unwrap_or_else(|| panic!("{name} in {data:?}")).as_f64().unwrap();
        // Three turns of the model, and the environment's messages after two or three of them.
        assert!(number("num_turns/max") >= 6.0 && number("num_turns/min") >= 2.0, "{data:?}");
        assert!(number("agent/context_ratio") > 0.0 && number("agent/context_ratio") < 1.0);
        let ends: f64 = EndReason::ALL.iter().filter_map(|end| data.get(&format!("agent/end/{}", end.name()))?.as_f64()).sum();
        assert!((ends - 1.0).abs() < 1e-12, "every conversation has an end: {data:?}");
        assert!(number("critic/score/max") <= 0.5 && number("critic/score/min") >= 0.0);
    }
}

/// A calculator on a server of the Model Context Protocol trains the same model as the built-in calculator.
#[test]
fn a_server_may_have_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = json!({"command": "python3", "args": ["tests/data/agents/mcp_server.py"]});
    std::fs::write(path("servers.json"), json!({"mcpServers": {"test": server}}).to_string()).unwrap();
    let listing = |tool: &str| {
        let mcp = json!({"mcp_servers_config_path": path("servers.json"), "tool_selected_list": [tool]});
        let class = "verl.tools.mcp_base_tool.MCPBaseTool";
        let entry = json!({"class_name": class, "config": {"type": "mcp", "rate_limit": 1000, "timeout": 30}, "mcp": mcp});
        let file = path(&format!("{tool}.yaml"));
        std::fs::write(&file, json!({ "tools": [entry] }).to_string()).unwrap();
        file.display().to_string()
    };
    let run = |name: &str, tools: &str, more: &[&str]| {
        let mut command = trainer(&["--config", "recipes/calculator/grpo.yaml"]);
        command.args(["data.train_batch_size=8", "actor_rollout_ref.actor.ppo_mini_batch_size=8", "trainer.logger=[file]"]);
        command.args(["trainer.total_training_steps=2", "trainer.test_freq=-1", "trainer.val_before_train=false"]);
        command.arg(format!("actor_rollout_ref.rollout.multi_turn.tool_config_path={tools}"));
        command.arg(format!("trainer.default_local_dir={}", path(name).display())).args(more);
        command
    };
    let listed = listing("calculator");
    let dry = succeed(run("dry", &listed, &["--dry-run=plan"]));
    let dry = String::from_utf8_lossy(&dry.stdout);
    assert!(dry.contains("tool_agent; tools calculator"), "{dry}");
    succeed(run("server", &listed, &[]));
    succeed(run("built-in", "data/calculator/tools.yaml", &[]));
    assert_eq!(text(&path("server")), text(&path("built-in")));
    assert!(rows(&path("server")).iter().all(|(_, data)| data["tools/call_frequency"].as_f64() > Some(0.1)));

    let output = run("mistake", &listing("calculatr"), &[]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let parts = ["calculatr.yaml:1", "no server of ", "Did you mean \"calculator\"?"];
    assert!(!output.status.success() && parts.iter().all(|part| error.contains(part)), "{error}");
}

const PROGRAM: &[&str] = &[
    "--config",
    "recipes/calculator/grpo.yaml",
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "actor_rollout_ref.rollout.n=4",
    "actor_rollout_ref.rollout.multi_turn.enable=false",
    "actor_rollout_ref.rollout.multi_turn.tool_config_path=null",
    "actor_rollout_ref.rollout.agent.default_agent_loop=server_agent",
    "actor_rollout_ref.rollout.agent.server.path=tests/data/agents/program.py",
    "reward.pass_env=[DELAY]",
    "trainer.total_training_steps=3",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "trainer.logger=[file]",
];

/// A program sends requests to the run's server. Its speed changes nothing, and neither does a stop.
#[test]
fn a_program_leads_the_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("products.jsonl");
    let row = |i: u64| {
        let (a, b) = (100 + 37 * i, 999 - 41 * i);
        json!({
            "data_source": "burnish/calculator",
            "prompt": [{"role": "user", "content": format!("{a}*{b}=")}],
            "reward_model": {"style": "rule", "ground_truth": (a * b).to_string()},
        })
    };
    std::fs::write(&data, (0..12).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
    let run = |name: &str, delay: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let places = [
            format!("trainer.default_local_dir={}", path.display()),
            format!("data.train_files={}", data.display()),
            format!("data.val_files={}", data.display()),
        ];
        let places = places.each_ref().map(String::as_str);
        let mut command = trainer(&[PROGRAM, &places, more].concat());
        command.env("DELAY", delay);
        succeed(command);
        path
    };
    let quick = run("quick", "0", &["trainer.save_freq=2"]);
    let slow = run("slow", "0.02", &["actor_rollout_ref.rollout.max_num_seqs=5"]);
    assert_eq!(text(&quick), text(&slow));
    let resumed = folder.path().join("quick");
    std::fs::remove_dir_all(resumed.join("global_step_3")).unwrap();
    std::fs::write(resumed.join("latest_checkpointed_iteration.txt"), "2").unwrap();
    assert_eq!(text(&run("quick", "0.01", &["trainer.save_freq=2"])), text(&slow));
    for (_, data) in rows(&slow) {
        let number = |name: &str| data.get(name).unwrap_or_else(|| panic!("{name} in {data:?}")).as_f64().unwrap();
        assert!(
            (number("agent/end/done") + number("agent/end/length") + number("agent/end/context_too_long") - 1.0).abs() < 1e-9
        );
        assert!(number("num_turns/max") >= 4.0, "some call the calculator: {data:?}");
        assert_eq!(number("agent/branches_dropped"), 0.0);
        assert!(number("agent/context_ratio") > 0.0 && number("critic/score/max") <= 1.0);
    }
}

#[test]
fn what_nobody_asks_for_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tools = "actor_rollout_ref.rollout.multi_turn.tool_config_path=tests/data/agents/calculator.yaml";
    let named = "actor_rollout_ref.rollout.multi_turn.tool_config_path=tests/data/agents/verl_tools.yaml";
    let tool_agent = "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent";
    for (settings, message) in [
        (&[tools][..], "no row asks for it"),
        (
            &[
                tool_agent,
                "actor_rollout_ref.rollout.agent.functions_path=no/such.py",
                "actor_rollout_ref.rollout.agent.functions=[f]",
            ],
            "no/such.py",
        ),
        (&[tool_agent, named], "verl_tools.yaml"),
        (&["actor_rollout_ref.rollout.agent.default_agent_loop=server_agent"], "agent.server.path=FILE"),
        (&["actor_rollout_ref.rollout.agent.server.path=tests/data/agents/program.py"], "is read by server_agent"),
        (
            &[
                "actor_rollout_ref.rollout.agent.default_agent_loop=server_agent",
                "actor_rollout_ref.rollout.agent.server.path=tests/data/agents/program.py",
                "actor_rollout_ref.rollout.agent.server.name=walk",
            ],
            "program.py has no walk; it has",
        ),
    ] {
        let output = small_run(&folder.path().join("run"), settings).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{settings:?}: {error}");
    }
}
