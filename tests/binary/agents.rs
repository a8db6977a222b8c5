//! Conversations of many turns with the real binary: an environment of a Python file, which takes its time, and what a run refuses.

use burnish::agent::End;

use super::common::{rows, small_run, succeed, text};

const GAME: &[&str] = &[
    "actor_rollout_ref.rollout.agent.default_agent_loop=text_environment_agent",
    "actor_rollout_ref.rollout.agent.agent_func_path=tests/data/agents/slow.py",
    "data.max_response_length=24",
    "reward.pass_env=[DELAY]",
    "trainer.total_training_steps=2",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
];

/// Two runs in which the environment takes other times are the same run, and so is one that was stopped and resumed.
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
        // Three turns of the model, and what the environment says after two or three of them.
        assert!(number("num_turns/max") >= 6.0 && number("num_turns/min") >= 2.0, "{data:?}");
        assert!(number("agent/context_ratio") > 0.0 && number("agent/context_ratio") < 1.0);
        let ends: f64 = End::ALL.iter().filter_map(|end| data.get(&format!("agent/end/{}", end.name()))?.as_f64()).sum();
        assert!((ends - 1.0).abs() < 1e-12, "every conversation has an end: {data:?}");
        assert!(number("critic/score/max") <= 0.5 && number("critic/score/min") >= 0.0);
    }
}

#[test]
fn what_nobody_asks_for_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tools = "actor_rollout_ref.rollout.multi_turn.tool_config_path=tests/data/agents/calculator.yaml";
    let named = "actor_rollout_ref.rollout.multi_turn.tool_config_path=tests/data/agents/verl_tools.yaml";
    let asked = "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent";
    for (settings, message) in [
        (&[tools][..], "no row asks for it"),
        (
            &[
                asked,
                "actor_rollout_ref.rollout.agent.functions_path=no/such.py",
                "actor_rollout_ref.rollout.agent.functions=[f]",
            ],
            "no/such.py",
        ),
        (&["actor_rollout_ref.rollout.agent.agent_loop_config_path=tests/data/agents/loops.yaml"], "loops of your own"),
        (&[asked, named], "verl_tools.yaml"),
    ] {
        let output = small_run(&folder.path().join("run"), settings).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{settings:?}: {error}");
    }
}
