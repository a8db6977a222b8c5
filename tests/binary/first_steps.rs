//! The documented conversions train two steps in an empty folder, on local rows with the columns of the named data set.

use std::fs;
use std::path::Path;

use crate::common::{succeed, trainer};

/// Returns the shell session of a page that begins with this text, without its prompt.
fn documented(page: &str, begin: &str) -> String {
    let text = fs::read_to_string(format!("docs/{page}")).unwrap();
    let at = text.find(begin).unwrap_or_else(|| panic!("{page} has no {begin}"));
    let command = &text[at..];
    let end = command.find("\n\n$ ").into_iter().chain(command.find("\n# Converted")).min().unwrap_or(command.len());
    command[..end].trim_start_matches("$ ").to_owned()
}

/// Writes a text to a file of a folder, and returns its path.
fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Sixteen rows of JSON; `{a}`, `{b}` and `{c}` are two numbers and their sum.
fn rows(form: &str) -> String {
    let row = |a: usize| {
        let b = 16 - a;
        form.replace("{a}", &a.to_string()).replace("{b}", &b.to_string()).replace("{c}", &(a + b).to_string()) + "\n"
    };
    (0..16).map(row).collect()
}

const CHAT: &str = r#"{"prompt": [{"role": "user", "content": "{a}+{b}="}], "solution": "{c}"}"#;
const CONTEXT: &str = r#"{"context_messages": [{"role": "user", "content": "{a}+{b}="}]}"#;
const VERL: &str = r#"{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "{a}+{b}="}], "ability": "math", "reward_model": {"style": "rule", "ground_truth": "{c}"}, "extra_info": {"index": {a}}}"#;
const REWARD: &str = "def reward_func(queries, prompts, labels):\n    return [float(len(query)) for query in queries]\n";

/// The words of a command in single quotes.
fn quoted(command: &str) -> &str {
    command.split('\'').nth(1).unwrap()
}

#[test]
fn documented_conversions_train_in_an_empty_folder() {
    let model = fs::canonicalize("data/arithmetic/model").unwrap().display().to_string();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    let chat = write(folder, "chat.jsonl", &rows(CHAT));
    let context = write(folder, "context.jsonl", &rows(CONTEXT));
    let verl = write(folder, "verl.jsonl", &rows(VERL));
    let reward = write(folder, "reward.py", REWARD);
    let script = documented("from-verl.md", "$ cat grpo.sh\n");
    let script = write(folder, "grpo.sh", script.trim_start_matches("cat grpo.sh\n"));
    let (trl, openrlhf) =
        (documented("from-trl.md", "$ trainer from-trl '"), documented("from-openrlhf.md", "$ trainer from-openrlhf '"));
    // The settings that need a network or packages, and the local settings to use instead.
    for (command, text, settings) in [
        (
            "from-trl",
            quoted(&trl).to_owned(),
            vec![format!("data.train_files={chat}"), "reward_model.reward_functions=[think_format_reward]".into()],
        ),
        (
            "from-openrlhf",
            quoted(&openrlhf).to_owned(),
            vec![
                format!("data.train_files={context}"),
                "reward_model.remote_url=null".into(),
                format!("custom_reward_function.path={reward}"),
                format!("critic.model.path={model}"),
                "data.train_batch_size=8".into(),
                "actor_rollout_ref.actor.ppo_mini_batch_size=8".into(),
            ],
        ),
        (
            "from-verl",
            format!("@{script}"),
            vec![
                format!("data.train_files={verl}"),
                format!("data.val_files={verl}"),
                "data.train_batch_size=8".into(),
                "actor_rollout_ref.actor.ppo_mini_batch_size=8".into(),
                "trainer.logger=console".into(),
            ],
        ),
    ] {
        let recipe = folder.join(format!("{command}.yaml")).display().to_string();
        let mut convert = trainer(&[command, &text, "--output", &recipe]);
        let converted = convert.current_dir(folder).output().unwrap();
        let message = String::from_utf8_lossy(&converted.stderr).into_owned();
        assert!(converted.status.code().is_some_and(|code| code < 2), "{command}: {message}");
        let run = format!("trainer.default_local_dir={}", folder.join(command).display());
        let mut start = trainer(&["--config", &recipe, &run, "trainer.device=cpu", "trainer.total_training_steps=2"]);
        start.current_dir(folder).args([
            format!("actor_rollout_ref.model.path={model}"),
            "data.max_prompt_length=16".into(),
            "data.max_response_length=8".into(),
        ]);
        start.args(settings);
        let output = succeed(start);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("step 2/2"), "{command}: {shown}");
    }
}

const PROGRAM: &str = r#"
import re
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

DIGITS = re.compile(r"\d+")
dataset = load_dataset("json", data_files="chat.jsonl", split="train")


def my_reward(completions, solution, **kwargs):
    return [float(DIGITS.findall(c[0]["content"]) == [s]) for c, s in zip(completions, solution)]


args = GRPOConfig(output_dir="out", learning_rate=1e-4, per_device_train_batch_size=8, num_generations=4,
                  max_completion_length=8, max_steps=2, report_to="none")
trainer = GRPOTrainer(model="MODEL", reward_funcs=my_reward, args=args, train_dataset=dataset)
trainer.train()
"#;

#[test]
fn a_program_of_trl_trains_with_its_own_reward() {
    let model = fs::canonicalize("data/arithmetic/model").unwrap().display().to_string();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "chat.jsonl", &rows(CHAT));
    write(folder.path(), "train.py", &PROGRAM.replace("MODEL", &model));
    let mut run = trainer(&["run", "train.py", "trainer.device=cpu"]);
    run.current_dir(folder.path());
    let output = run.output().unwrap();
    let (shown, message) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && shown.contains("step 2/2"), "{shown}\n{message}");
    assert!(message.contains("the training (train.py:"), "{message}");
}
