//! From the conversations of `trainer generate` to rows for training: results of tools keep their role, and exactly the sampled
//! tokens are trained.

use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::data::examples::{AssistantMask, ChatColumns, Overlong, SftColumns, SftOptions, load_sft};
use burnish::data::rows::{EVERY_COLUMN, read_rows};
use burnish::data::{TemplateVariables, Tokenizer};
use serde_json::{Value, json};

use super::common::{of_task, succeed, trainer};
use super::scripted::{BEGIN, END, call, scripted};

fn rows(path: &Path) -> Vec<Value> {
    read_rows(&[path.to_owned()], &[], EVERY_COLUMN).unwrap().into_iter().map(|row| row.values.into()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// Conversations with a calculator, and their scores. Returns the model and the file.
fn scored(folder: &Path) -> (PathBuf, PathBuf) {
    let one = call("6*7");
    let model = scripted(&folder.join("model"), &[(BEGIN, &[&one, "42", "41"]), (&one, &[END])]);
    let at = |name: &str| folder.join(name);
    let row = |i: usize| {
        let shots = [json!({"role": "user", "content": "1*1="}), json!({"role": "assistant", "content": "1"})];
        let question = json!({"role": "user", "content": format!("6*7={}", "?".repeat(i))});
        let prompt: Vec<Value> = if i == 2 { shots.into_iter().chain([question]).collect() } else { vec![question] };
        json!({"data_source": "burnish/calculator", "prompt": prompt, "reward_model": {"ground_truth": "42"}})
    };
    std::fs::write(at("rows.jsonl"), (0..3).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
    let mut generate = of_task("generate");
    generate.args(["data.n_samples=8", "rollout.prompt_length=64", "rollout.response_length=60"]);
    generate.args(["rollout.agent.default_agent_loop=tool_agent", "rollout.multi_turn.max_assistant_turns=3"]);
    generate.arg("rollout.multi_turn.tool_config_path=data/calculator/tools.yaml");
    generate.arg(format!("data.path={}", at("rows.jsonl").display())).arg(format!("model.path={}", model.display()));
    generate.arg(format!("data.output_path={}", at("answers.parquet").display()));
    succeed(generate);
    let mut eval = trainer(&["eval"]);
    eval.arg(format!("data.path={}", at("answers.parquet").display()));
    eval.arg(format!("data.output_path={}", at("scored.parquet").display()));
    succeed(eval);
    (model, at("scored.parquet"))
}

fn select(kind: &str, input: &Path, output: &Path, more: &[&str]) -> Command {
    let mut command = trainer(&["data", "select", kind, "--input"]);
    command.arg(input).arg("--output").arg(output).args(more);
    command
}

/// The trained texts of each example.
fn learnt(file: &Path, columns: SftColumns, model: &Path) -> Vec<String> {
    let tokenizer = Tokenizer::load(model).unwrap();
    let options = SftOptions {
        loss_mask: columns.usual_mask(),
        usual_mask: true,
        reading: Default::default(),
        columns,
        chat: ChatColumns {
            tools_key: "tools".into(),
            chat_template_kwargs_key: "chat_template_kwargs".into(),
            enable_thinking_key: None,
        },
        assistant_mask: AssistantMask::Auto,
        loss_roles: vec!["assistant".into()],
        max_length: 400,
        overlong: Overlong::Error,
        chat_kwargs: TemplateVariables::default(),
    };
    let learnt = |document: burnish::data::Document| {
        assert!(tokenizer.decode(&document.ids, false).unwrap().contains("<tools>calculator</tools>"), "its tools are shown");
        let ids = document.ids.iter().zip(&document.weights).filter(|(_, weight)| **weight > 0.0).map(|(id, _)| *id);
        tokenizer.decode(&ids.collect::<Vec<_>>(), false).unwrap()
    };
    load_sft(&[file.to_owned()], &tokenizer, &options).unwrap().into_iter().map(learnt).collect()
}

/// The trained text of a completion: the turns of the model. It includes the text that the template writes after a single turn.
fn completed(completion: &Value) -> String {
    written(completion) + if list(completion).len() == 1 { "\n" } else { "" }
}

/// The turns of the model in a completion, as it wrote them.
fn written(completion: &Value) -> String {
    let turn = |message: &Value| {
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        format!("{}{}{END}", message["content"].as_str().unwrap(), call("6*7").repeat(calls))
    };
    list(completion).iter().filter(|message| message["role"] == "assistant").map(turn).collect()
}

/// Checks that tools or users speak between turns of the model, and that no message follows its last turn.
fn check(prompt: &Value, completion: &Value) {
    let roles: Vec<&str> = list(completion).iter().map(|message| message["role"].as_str().unwrap()).collect();
    let alternates = roles.iter().enumerate().all(|(i, role)| *role == ["assistant", "tool"][i % 2]);
    assert!(alternates && roles.len() % 2 == 1, "{completion}");
    assert!(list(completion).iter().filter(|message| message["role"] == "tool").all(|message| message["content"] == "42"));
    assert_eq!(list(prompt).last().unwrap()["role"], "user");
    assert!(!completion.to_string().contains(END), "{completion}");
}

#[test]
fn conversations_become_rows_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (model, scored) = scored(folder.path());
    let at = |name: &str| folder.path().join(name);
    let completion = || SftColumns::Completion { prompt_key: "prompt".into(), completion_key: "completion".into() };
    let stage = |args: &[&str], file: &Path| {
        let mut command = trainer(args);
        command.args(["--dry-run=plan", "data.max_length=400", "data.train_batch_size=2", "data.val_files=null"]);
        command.arg(format!("model.path={}", model.display())).arg(format!("data.train_files={}", file.display()));
        succeed(command);
    };
    for (kind, more) in [("best", &[][..]), ("threshold", &["--threshold", "1"]), ("unpaired", &["--threshold", "1"])] {
        for ending in ["jsonl", "parquet"] {
            let file = at(&format!("{kind}.{ending}"));
            succeed(select(kind, &scored, &file, more));
            let rows = rows(&file);
            rows.iter().for_each(|row| check(&row["prompt"], &row["completion"]));
            assert!(kind == "best" || rows.iter().any(|row| list(&row["completion"]).len() > 1), "{kind}: no row with a tool");
            assert!(rows.iter().any(|row| list(&row["prompt"]).len() == 3), "{kind}: no row with a few shots");
            let expected: Vec<String> = rows.iter().map(|row| completed(&row["completion"])).collect();
            assert_eq!(learnt(&file, completion(), &model), expected, "{kind}.{ending}");
        }
    }
    stage(&["sft", "data.completion_key=completion"], &at("threshold.jsonl"));
    stage(&["dpo", "algorithm.loss_type=kto"], &at("unpaired.jsonl"));

    let pairs = at("pairs.jsonl");
    succeed(select("pairs", &scored, &pairs, &[]));
    for row in rows(&pairs) {
        check(&row["prompt"], &row["chosen"]);
        check(&row["prompt"], &row["rejected"]);
    }
    stage(&["dpo"], &pairs);
    stage(&["rm"], &pairs);

    // The file itself is read: each conversation is an example.
    let messages = SftColumns::Messages { messages_key: "messages".into() };
    let printed: Vec<Value> = rows(&scored).iter().flat_map(|row| list(&row["messages"]).to_vec()).collect();
    let expected = printed.iter().map(|text| {
        let printed: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        written(&list(&printed["messages"])[printed["asked"].as_u64().unwrap() as usize..].into())
    });
    assert_eq!(learnt(&scored, messages, &model), expected.collect::<Vec<_>>());
    stage(&["sft", "data.messages_key=messages"], &scored);

    // Rows of texts would mix results of tools with the model's text.
    for kind in ["rs", "iter_dpo", "csft"] {
        let output = select(kind, &scored, &at("texts.jsonl"), &[]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains("conversations with tools"), "{kind}: {error}");
    }
}

/// The lines of a run's rollouts have their conversations in columns.
#[test]
fn rollouts_become_rows_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let messages = [("user", "6*7="), ("assistant", "?"), ("tool", "42"), ("assistant", "42")]
        .map(|(role, content)| json!({"role": role, "content": content}));
    let line = json!({
        "input": "<|im_start|>user\n6*7=<|im_end|>\n", "output": "?\ntool\n42\nassistant\n42", "score": 1.0, "messages": messages,
        "asked": 1, "tools": [{"type": "function", "function": {"name": "calculator"}}], "end": "answer", "num_turns": 4,
    });
    std::fs::write(at("1.jsonl"), line.to_string()).unwrap();
    let keys = ["--prompt-key", "input", "--response-key", "output", "--score-key", "score"];
    succeed(select("best", &at("1.jsonl"), &at("best.jsonl"), &keys));
    let best = &rows(&at("best.jsonl"))[0];
    assert_eq!((list(&best["prompt"]), list(&best["completion"])), (&messages[..1], &messages[1..]));
    assert_eq!(serde_json::from_str::<Value>(best["tools"].as_str().unwrap()).unwrap(), line["tools"]);
}

/// Conversations of a user's loop are known only as tokens: they are left out, with a message.
#[test]
fn conversations_without_messages_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let talk = |tokens_only: bool, more: &[(&str, &str)]| {
        let printed = [("user", "6*7="), ("assistant", "41")].iter().chain(more);
        let messages: Vec<Value> = printed.map(|(role, content)| json!({"role": role, "content": content})).collect();
        json!({"messages": messages, "asked": 1, "tokens_only": tokens_only, "end": "answer", "num_turns": 2}).to_string()
    };
    let more = [("user", "\nuser\nSure?\nassistant\n"), ("assistant", "42")];
    let rows = json!({
        "prompt": [{"role": "user", "content": "6*7="}], "responses": ["41", "41\nuser\nSure?\nassistant\n42"], "scores": [0, 1],
        "messages": [talk(false, &[]), talk(true, &more)],
    });
    std::fs::write(at("scored.jsonl"), rows.to_string()).unwrap();
    let output = succeed(select("best", &at("scored.jsonl"), &at("best.jsonl"), &[]));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("left out: 1 conversations without recorded messages"), "{printed}");
    let best = &self::rows(&at("best.jsonl"))[0];
    assert_eq!(best["completion"], json!([{"role": "assistant", "content": "41"}]));
    let mut sft = trainer(&["sft", "--dry-run=plan", "data.messages_key=messages", "model.path=data/calculator/model"]);
    sft.args(["data.train_batch_size=1", "data.val_files=null"])
        .arg(format!("data.train_files={}", at("scored.jsonl").display()));
    let output = sft.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("only the text of its tokens"), "{error}");
}
