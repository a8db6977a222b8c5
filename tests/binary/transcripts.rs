//! Every reader gets the model's own text. For every loop and every end of a conversation, the assistant's messages are the
//! sampled turns: in reward functions of each form, in the rollouts of a run, in its samples and in files of responses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::agent::EndReason;
use serde_json::{Value, json};

use super::common::{succeed, trainer};
use super::scripted::{BEGIN, END, call, scripted};

const GROUP: &str = "actor_rollout_ref.rollout.";
/// A text that looks like a call and cannot be parsed.
const BROKEN: &str = "<tool_call>{oops}</tool_call>";
const HEARD: &str = "tests/data/agents/heard.py";

/// A loop with the settings that name it, and the token limits and turn limits that lead to each of its ends.
struct Case {
    name: &'static str,
    settings: &'static [&'static str],
    /// Settings of each run.
    runs: &'static [&'static [&'static str]],
    ends: &'static [EndReason],
    /// True if responses are conversations.
    is_conversation: bool,
    /// True if the loop returns the score itself, so that no reward function runs.
    scores: bool,
}

const TOOL: [&str; 2] = ["agent.default_agent_loop=tool_agent", "multi_turn.tool_config_path=data/calculator/tools.yaml"];
const FUNCTION: &str = "agent.functions_path=tests/data/agents/heard.py";

const CASES: &[Case] = &[
    Case {
        name: "single turn",
        settings: &[],
        runs: &[&["response_length=9"]],
        ends: &[],
        is_conversation: false,
        scores: false,
    },
    Case {
        name: "tools",
        settings: &TOOL,
        runs: &[
            &["response_length=1"],
            &["response_length=10"],
            &["response_length=15"],
            &["response_length=60", "multi_turn.max_assistant_turns=3"],
            &["response_length=60", "multi_turn.max_user_turns=1", "multi_turn.max_parallel_calls=2"],
        ],
        ends: &[
            EndReason::Answer,
            EndReason::UnreadableCall,
            EndReason::AssistantTurns,
            EndReason::UserTurns,
            EndReason::Length,
            EndReason::ContextTooLong,
        ],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "functions that take too long",
        settings: &[TOOL[0], FUNCTION, "agent.functions=[calculator]", "agent.conversation_timeout=0.01"],
        runs: &[&["response_length=60"]],
        ends: &[EndReason::Timeout],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "a user",
        settings: &[TOOL[0], TOOL[1], "multi_turn.interaction_config_path=tests/data/agents/users.yaml"],
        runs: &[&["response_length=40"], &["response_length=300", "multi_turn.max_assistant_turns=2"]],
        ends: &[EndReason::Done, EndReason::AssistantTurns, EndReason::ContextTooLong],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "an environment",
        settings: &[
            "agent.default_agent_loop=environment_agent",
            "agent.environment.path=tests/data/agents/heard.py",
            "agent.environment.name=Game",
        ],
        runs: &[&["response_length=10"], &["response_length=60", "agent.max_tool_calling_iterations=1"]],
        ends: &[EndReason::Answer, EndReason::UnreadableCall, EndReason::UserTurns, EndReason::ContextTooLong],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "a program that chats",
        settings: &[
            "agent.default_agent_loop=server_agent",
            "agent.server.path=tests/data/agents/heard.py",
            "agent.server.name=chats",
            "agent.server.scores=false",
        ],
        runs: &[&["response_length=1"], &["response_length=60", "multi_turn.max_assistant_turns=2"]],
        ends: &[EndReason::AssistantTurns, EndReason::ContextTooLong],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "a program that completes",
        settings: &[
            "agent.default_agent_loop=server_agent",
            "agent.server.path=tests/data/agents/heard.py",
            "agent.server.name=completes",
            "agent.server.scores=false",
        ],
        runs: &[&["response_length=60"]],
        ends: &[EndReason::Done],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "a program that fails",
        settings: &[
            "agent.default_agent_loop=server_agent",
            "agent.server.path=tests/data/agents/heard.py",
            "agent.server.name=fails",
            "agent.server.scores=false",
        ],
        runs: &[&["response_length=60"]],
        ends: &[EndReason::Failed],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "a loop in Python",
        settings: &[
            "agent.default_agent_loop=react",
            "agent.agent_loop_config_path=tests/data/agents/own_loops.yaml",
            "multi_turn.function_tool_path=tests/data/agents/own_tool.py",
        ],
        runs: &[&["response_length=14"], &["response_length=60"]],
        ends: &[EndReason::Answer, EndReason::Length],
        is_conversation: true,
        scores: false,
    },
    Case {
        name: "an environment of texts",
        settings: &["agent.default_agent_loop=text_environment_agent", "agent.agent_func_path=tests/data/agents/slow.py"],
        runs: &[&["response_length=5"], &["response_length=60"]],
        ends: &[EndReason::Done, EndReason::ContextTooLong],
        is_conversation: true,
        scores: true,
    },
];

/// The model calls once or twice, or answers, with words that a tool or a user also uses, or writes a call that cannot be parsed.
fn model(folder: &Path) -> PathBuf {
    let (one, two) = (call("6*7"), call("2*3"));
    let script: [(&str, &[&str]); 2] = [(BEGIN, &[&one, "So ", "42", "#### 42", BROKEN]), (&one, &[&two, BROKEN, END])];
    scripted(folder, &[script[0], script[1], ("So ", &[&one])])
}

fn run(folder: &Path, model: &Path, case: &Case, bounds: &[&str]) -> Command {
    std::fs::create_dir_all(folder).unwrap();
    let row = |i: u64| {
        json!({
            "data_source": "test", "prompt": [{"role": "user", "content": format!("6*7={}", "?".repeat(i as usize))}],
            "reward_model": {"ground_truth": "42"},
            "extra_info": {"index": i, "interaction_kwargs": {"name": "gsm8k", "ground_truth": "42"}},
        })
    };
    let rows = folder.join("rows.jsonl");
    std::fs::write(&rows, (0..2).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
    let mut command = trainer(&["--config", "arithmetic/first.yaml"]);
    command.args(["train", "val"].map(|part| format!("data.{part}_files={}", rows.display())));
    command.args([
        "data.train_batch_size=2",
        "data.max_prompt_length=64",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
        "actor_rollout_ref.rollout.n=16",
        "actor_rollout_ref.rollout.multi_turn.format=hermes",
        "custom_reward_function.name=[verl,trl,openrlhf]",
        "reward.on_error=abstain",
        "reward.num_workers=1",
        "reward.pass_env=[HEARD,SLOW,DELAY]",
        "trainer.total_training_steps=1",
        "trainer.val_before_train=false",
        "trainer.test_freq=-1",
        "trainer.log_completions=32",
        "trainer.logger=[file]",
    ]);
    command.arg(format!("custom_reward_function.path={HEARD}")).arg(format!("actor_rollout_ref.model.path={}", model.display()));
    for (key, path) in [("default_local_dir", "run"), ("rollout_data_dir", "rollouts")] {
        command.arg(format!("trainer.{key}={}", folder.join(path).display()));
    }
    for setting in case.settings.iter().chain(bounds) {
        command.arg(match setting.strip_prefix("response_length=") {
            Some(length) => format!("data.max_response_length={length}"),
            None => format!("{GROUP}{setting}"),
        });
    }
    command.env("HEARD", folder.join("heard.jsonl")).env("DELAY", "0").env("SLOW", "0.03");
    command
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// The turns that were sampled, as text without special tokens.
fn sampled(sample: &Value) -> Vec<String> {
    let mut turns: Vec<String> = Vec::new();
    let mut before = false;
    for (token, sampled) in list(&sample["tokens"]).iter().zip(list(&sample["sampled"])) {
        let now = sampled == 1;
        if now && !before {
            turns.push(String::new());
        }
        if let (true, Some(turn)) = (now, turns.last_mut()) {
            turn.push_str(token.as_str().unwrap());
        }
        before = now;
    }
    turns.iter().map(|turn| turn.replace(END, "")).collect()
}

/// The text of a message with its calls; spaces in JSON may differ.
fn text(message: &Value) -> String {
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        format!(
            "<tool_call>{}</tool_call>",
            json!({"name": call["function"]["name"], "arguments": call["function"]["arguments"]})
        )
    });
    message["content"].as_str().unwrap().to_owned() + &calls.collect::<String>()
}

/// Texts without spaces, with their calls at the end: a message has calls next to its text.
fn same(texts: &[String]) -> Vec<String> {
    let without_space = |text: &str| text.split_whitespace().collect::<String>();
    let calls = [call("6*7"), call("2*3")].map(|call| without_space(&call));
    let same = |text: &String| {
        let text = without_space(text);
        let found = calls.iter().map(|call| call.repeat(text.matches(call.as_str()).count()));
        calls.iter().fold(text.clone(), |text, call| text.replace(call, "")) + &found.collect::<String>()
    };
    texts.iter().map(same).collect()
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_key(Value::to_string);
    values
}

/// Checks a run, and adds the ends of its conversations.
fn check(label: &str, folder: &Path, case: &Case, ends: &mut BTreeSet<String>) {
    let samples = lines(&folder.join("run/samples.jsonl"));
    let rollouts = lines(&folder.join("rollouts/1.jsonl"));
    let received = lines(&folder.join("heard.jsonl"));
    assert_eq!((samples.len(), rollouts.len()), (32, 32), "{label}");
    let (mut conversations, mut prompts, mut completions) = (Vec::new(), Vec::new(), Vec::new());
    for (sample, rollout) in samples.iter().zip(&rollouts) {
        assert_eq!(sample["response"], rollout["output"], "{label}");
        let mut prompt = Value::Null;
        let mut completion = json!([{"role": "assistant", "content": rollout["output"]}]);
        if case.is_conversation {
            let messages = list(&sample["messages"]);
            assert_eq!(messages, list(&rollout["messages"]), "{label}");
            let (before, behind) = messages.split_at(rollout["asked"].as_u64().unwrap() as usize);
            let printed: Vec<String> = behind.iter().filter(|message| message["role"] == "assistant").map(text).collect();
            assert_eq!(same(&printed), same(&sampled(sample)), "{label}: {} {}", sample["end"], json!(messages));
            assert!(!json!(messages).to_string().contains("<|im_"), "{label}: {}", json!(messages));
            ends.insert(sample["end"].as_str().unwrap().to_owned());
            (prompt, completion) = (before.into(), behind.into());
            if case.scores || matches!(sample["end"].as_str(), Some("failed" | "timeout")) {
                continue;
            }
        }
        conversations.push((sample, rollout));
        prompts.push(prompt);
        completions.push(completion);
    }
    let of = |style: &str| received.iter().filter(|one| one[0] == style).map(|one| one[1].clone()).collect::<Vec<Value>>();
    let verl = conversations.iter().map(|(_, rollout)| json!({"text": rollout["output"], "messages": rollout["messages"]}));
    assert_eq!(sorted(of("verl")), sorted(verl.collect()), "{label}");
    let query = |(sample, _): &(&Value, &Value)| {
        let response: String = list(&sample["tokens"]).iter().filter_map(Value::as_str).collect();
        json!({"query": format!("{}{response}", sample["prompt"].as_str().unwrap()), "prompt": sample["prompt"]})
    };
    assert_eq!(sorted(of("openrlhf")), sorted(conversations.iter().map(query).collect()), "{label}");
    let trl = of("trl");
    assert_eq!(trl.len(), usize::from(!conversations.is_empty()), "{label}");
    if let Some(trl) = trl.first() {
        assert_eq!(list(&trl["completions"]), completions, "{label}");
        // As in TRL, the environment's text is added to the last message.
        let added = if case.name == "an environment" { "!" } else { "" };
        for (given, read) in list(&trl["prompts"]).iter().zip(prompts) {
            assert!(given.to_string().contains(&format!("{added}\"}}")), "{label}: {given}");
            assert!(!case.is_conversation || *given == read, "{label}: {given}");
        }
        assert!(
            list(&trl["ids"])
                .iter()
                .zip(&conversations)
                .all(|(ids, (sample, _))| list(ids).len() == list(&sample["tokens"]).len())
        );
    }
}

#[test]
fn everybody_is_told_what_the_model_said() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(&folder.path().join("model"));
    let mut all = BTreeSet::new();
    for case in CASES {
        let mut ends = BTreeSet::new();
        for (i, bounds) in case.runs.iter().enumerate() {
            let own = folder.path().join(format!("{} {i}", case.name));
            succeed(run(&own, &model, case, bounds));
            check(&format!("{}, {bounds:?}", case.name), &own, case, &mut ends);
        }
        let missing: Vec<&str> = case.ends.iter().map(|end| end.name()).filter(|end| !ends.contains(*end)).collect();
        assert!(missing.is_empty(), "{}: no conversation ended with {missing:?}, but with {ends:?}", case.name);
        all.extend(ends);
    }
    assert_eq!(all, EndReason::ALL.iter().map(|end| end.name().to_owned()).collect());
}
