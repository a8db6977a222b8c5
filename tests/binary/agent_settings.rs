//! Every setting of conversations in every loop: it has an effect, or the run reports it as ignored.

use std::collections::BTreeSet;
use std::thread;

use burnish::config::defaults;
use burnish::data::rows::read_rows;

use super::common::{small_run, succeed, trainer};
use super::scripted::{BEGIN, call, scripted};

const GROUP: &str = "actor_rollout_ref.rollout.";

/// The loops and their settings.
const LOOPS: &[(&str, &[&str])] = &[
    ("single_turn_agent", &[]),
    ("tool_agent", &["multi_turn.tool_config_path=tests/data/agents/calculator.yaml"]),
    ("environment_agent", &["agent.environment.path=tests/data/agents/toy.py", "agent.environment.name=Toy"]),
    ("text_environment_agent", &["agent.agent_func_path=tests/data/agents/goes_on.py"]),
    ("server_agent", &["agent.server.path=tests/data/agents/program.py"]),
    ("one_turn", &["agent.agent_loop_config_path=tests/data/agents/own_loops.yaml"]),
];

const SET_UP: &[&str] = &[
    "multi_turn.enable",
    "multi_turn.tool_config_path",
    "multi_turn.function_tool_path",
    "multi_turn.interaction_config_path",
    "agent.default_agent_loop",
    "agent.read_agent_name",
    "agent.agent_loop_config_path",
    "agent.functions_path",
    "agent.functions",
    "agent.environment.path",
    "agent.environment.name",
    "agent.agent_func_path",
    "agent.server.path",
];

/// The other settings, each with a value other than the default and the loops in which it has an effect. All other loops name it
/// as ignored.
const READ_BY: &[(&str, &str, &[&str])] = &[
    ("multi_turn.max_assistant_turns", "2", EVERY),
    ("multi_turn.max_user_turns", "2", EVERY),
    ("multi_turn.max_parallel_calls", "3", &["tool_agent", "one_turn"]),
    ("multi_turn.max_tool_response_length", "8", &["tool_agent", "one_turn"]),
    ("multi_turn.tool_response_truncate_side", "left", &["tool_agent", "one_turn"]),
    ("multi_turn.format", "qwen3_coder", &["tool_agent", "environment_agent", "server_agent", "one_turn"]),
    ("agent.call_timeout", "7", EVERY),
    ("agent.conversation_timeout", "7", EVERY),
    ("agent.memory_limit_mb", "4096", EVERY),
    ("agent.start_method", "spawn", &["environment_agent", "text_environment_agent", "server_agent", "one_turn"]),
    ("agent.max_tool_calling_iterations", "3", &["environment_agent"]),
    // The program's file has only one function.
    ("agent.server.name", "walk", &["server_agent"]),
    ("agent.server.scores", "true", &["server_agent"]),
    ("agent.ignore_calls_in_thinking", "false", &["tool_agent", "server_agent", "one_turn"]),
    ("agent.tell_unreadable_calls", "true", &["tool_agent"]),
    ("agent.neutralise_control_tokens", "false", &["tool_agent", "environment_agent", "server_agent", "one_turn"]),
];
const EVERY: &[&str] = &["tool_agent", "environment_agent", "text_environment_agent", "server_agent", "one_turn"];

#[test]
fn every_setting_acts_or_is_named_in_every_loop() {
    let all = defaults("ppo_trainer").unwrap().keys();
    let is_group = |key: &str| all.iter().any(|other| other.starts_with(&format!("{key}.")));
    let of_conversations = all.iter().filter(|key| !is_group(key)).filter_map(|key| {
        let key = key.strip_prefix(GROUP)?;
        (key.starts_with("multi_turn.") || key.starts_with("agent.")).then_some(key)
    });
    let known: BTreeSet<&str> = SET_UP.iter().copied().chain(READ_BY.iter().map(|(key, ..)| *key)).collect();
    assert_eq!(of_conversations.collect::<BTreeSet<_>>(), known, "a setting that this walk does not know");
    let folder = tempfile::tempdir().unwrap();
    for (name, set_up) in LOOPS {
        let acts = |readers: &[&str]| readers.contains(name);
        let mut settings = vec![format!("{GROUP}agent.default_agent_loop={name}"), "--dry-run=plan".to_owned()];
        settings.extend(["actor_rollout_ref.model.path=data/calculator/model", "data.max_prompt_length=64"].map(str::to_owned));
        settings.extend(set_up.iter().map(|setting| format!("{GROUP}{setting}")));
        // The file has only the default function.
        let changed = READ_BY.iter().filter(|(key, _, readers)| !(*key == "agent.server.name" && acts(readers)));
        settings.extend(changed.map(|(key, value, _)| format!("{GROUP}{key}={value}")));
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let output = succeed(small_run(&folder.path().join(name), &settings));
        let messages = String::from_utf8_lossy(&output.stderr);
        let ignored: BTreeSet<&str> = messages
            .lines()
            .filter_map(|line| line.split_once("ignored: "))
            .flat_map(|(_, line)| line.split_once(": ").map_or(line, |(keys, _)| keys).split(", "))
            .filter_map(|key| key.strip_prefix(GROUP))
            .collect();
        let expected: BTreeSet<&str> = READ_BY.iter().filter(|(_, _, readers)| !acts(readers)).map(|(key, ..)| *key).collect();
        assert_eq!(ignored, expected, "{name}: {messages}");
    }
}

/// Settings whose effect shows in a conversation that never ends by itself: the setting, and the loops in which it has an effect.
const SHOWN: &[(&str, &[&str])] = &[
    ("multi_turn.max_assistant_turns=2", &["tool_agent", "environment_agent", "text_environment_agent", "server_agent"]),
    ("multi_turn.max_user_turns=1", &["tool_agent", "environment_agent", "text_environment_agent", "server_agent"]),
    ("multi_turn.max_parallel_calls=3", &["tool_agent"]),
    ("multi_turn.max_tool_response_length=8", &["tool_agent"]),
    ("agent.max_tool_calling_iterations=1", &["environment_agent"]),
    ("agent.neutralise_control_tokens=false", &["tool_agent", "environment_agent", "server_agent"]),
];

/// The loops, each with its part of tests/data/agents/goes_on_and_on.py.
const GO_ON: &[(&str, &[&str])] = &[
    ("tool_agent", &["agent.functions_path=FILE", "agent.functions=[calculator]"]),
    ("environment_agent", &["agent.environment.path=FILE", "agent.environment.name=Toy"]),
    ("text_environment_agent", &["agent.agent_func_path=FILE"]),
    ("server_agent", &["agent.server.path=FILE"]),
];

#[test]
fn what_acts_is_seen_in_conversations_that_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let calls = [call("1"), call("2"), call("3")].concat();
    let model = scripted(&folder.path().join("model"), &[(BEGIN, &[&calls])]);
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, "{\"prompt\": [{\"role\": \"user\", \"content\": \"1+2=\"}]}\n").unwrap();
    let walk = |name: &str, set_up: &[&str]| {
        let led = |nth: usize, setting: Option<&str>| {
            let output = folder.path().join(format!("{name}{nth}.parquet"));
            let mut command =
                trainer(&["generate", "rollout.prompt_length=200", "rollout.response_length=400", "reward.pass_env=[SAYS]"]);
            // The token that ends a turn, so that special tokens take less room.
            command.env("SAYS", "0123456789<|im_end|>abcdefghij");
            command.args([format!("data.path={}", rows.display()), format!("model.path={}", model.display())]);
            command.arg(format!("data.output_path={}", output.display())).arg(format!("rollout.agent.default_agent_loop={name}"));
            let file = |setting: &str| format!("rollout.{}", setting.replace("FILE", "tests/data/agents/goes_on_and_on.py"));
            command.args(set_up.iter().copied().chain(setting).map(file));
            let printed = String::from_utf8_lossy(&succeed(command).stderr).into_owned();
            let rows = read_rows(&[output], &["responses"], &["messages"]).unwrap();
            let key = setting.and_then(|setting| setting.split_once('=')).map_or("", |(key, _)| key).to_owned();
            (rows[0].values["messages"].to_string(), printed.contains(&format!("rollout.{key}: ")), printed)
        };
        let (base, ..) = led(0, None);
        assert!(base.matches("assistant").count() > 2, "{name}: {base}");
        for (nth, (setting, acts_in)) in SHOWN.iter().enumerate() {
            let (messages, is_named, printed) = led(nth + 1, Some(setting));
            assert_eq!(
                (messages != base, is_named),
                (acts_in.contains(&name), !acts_in.contains(&name)),
                "{setting} in {name}: {printed}"
            );
        }
    };
    thread::scope(|scope| {
        let running: Vec<_> = GO_ON.iter().map(|(name, set_up)| scope.spawn(|| walk(name, set_up))).collect();
        running.into_iter().for_each(|one| one.join().unwrap());
    });
}
