//! `trainer doctor CONFIG`: each check before a run finds its fault, and accuses no sound recipe.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{copy, trainer};

/// The verdicts by check, and the exit code.
type Verdicts = (BTreeMap<String, String>, Option<i32>);

fn doctor(words: &[&str]) -> Verdicts {
    let output = trainer(&["doctor"]).args(words).arg("--json").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let name = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let verdicts: BTreeMap<String, String> = rows.map(|row| (name(&row, "check"), name(&row, "verdict"))).collect();
    assert!(!verdicts.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    (verdicts, output.status.code())
}

/// Asserts the verdicts of some checks.
fn expect(words: &[&str], expected: &[(&str, &str)]) {
    let (verdicts, code) = doctor(words);
    for (check, verdict) in expected {
        assert_eq!(verdicts[*check], *verdict, "{words:?}: {check}: {verdicts:?}");
    }
    let fails = verdicts.values().any(|verdict| verdict == "fail");
    assert_eq!(code, Some(i32::from(fails)), "{words:?}");
}

fn write(folder: &Path, name: &str, rows: impl Iterator<Item = Value>) -> String {
    let path = folder.join(name);
    fs::write(&path, rows.map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    path.display().to_string()
}

/// Copies a model, with another tokenizer_config.json.
fn model(folder: &Path, name: &str, of: &str, change: impl Fn(String) -> String) -> String {
    let to = folder.join(name);
    copy(Path::new(of), &to);
    let path = to.join("tokenizer_config.json");
    fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    to.display().to_string()
}

#[test]
fn faults_of_reinforcement_learning_are_found_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row =
        |prompt: Value, truth: String| json!({"prompt": prompt, "data_source": "x", "reward_model": {"ground_truth": truth}});
    let asked = |i: usize| format!("{i}*7=");
    let message = |i: usize| json!([{"role": "user", "content": asked(i)}]);
    let texts = write(folder, "text.jsonl", (10..42).map(|i| row(asked(i).into(), "1234".to_owned())));
    let chats = write(folder, "chat.jsonl", (10..42).map(|i| row(message(i), (i * 7).to_string())));
    let others = write(folder, "val.jsonl", (50..58).map(|i| row(message(i), (i * 7).to_string())));
    let think = model(folder, "think", "data/calculator/model", |text| {
        text.replace("assistant\\\\n' }}", "assistant\\\\n<think>\\\\n' }}")
    });
    let data = |train: &str, val: &str| [format!("data.train_files={train}"), format!("data.val_files={val}")];
    let of_model = |path: &str| format!("actor_rollout_ref.model.path={path}");
    let common = "--config ppo_trainer.yaml data.train_batch_size=8 actor_rollout_ref.actor.ppo_mini_batch_size=8 \
                  trainer.total_training_steps=20 data.max_prompt_length=64 \
                  reward_model.reward_functions=[think_format_reward]";
    let run = |own: &str, files: [String; 2], model: &str, expected: &[(&str, &str)]| {
        let (model, own) = (of_model(model), own.split_whitespace());
        let words: Vec<&str> =
            common.split_whitespace().chain(own).chain(files.iter().map(String::as_str)).chain([model.as_str()]).collect();
        expect(&words, expected);
    };
    let calculator = "data/calculator/model";
    run(
        "actor_rollout_ref.rollout.temperature=0.01 actor_rollout_ref.actor.optim.lr=0 actor_rollout_ref.actor.entropy_coeff=-0.1 \
         actor_rollout_ref.rollout.ignore_eos=true data.max_response_length=3 --sample 0",
        data(&texts, &texts),
        calculator,
        &[
            ("text prompt of a chat model", "fail"),
            ("end token", "fail"),
            ("length limits", "fail"),
            ("rows in both files", "fail"),
            ("responses to compare", "fail"),
            ("learning rate", "fail"),
            ("settings against the aim", "warn"),
            ("begin token", "pass"),
            ("prefilled tag", "pass"),
            ("signal of samples", "n/a"),
        ],
    );
    run(
        "actor_rollout_ref.actor.optim.lr=2e-2 actor_rollout_ref.rollout.min_tokens=8 data.max_response_length=8 \
         data.shuffle=false data.seed=3 --sample 4",
        data(&chats, &others),
        &think,
        &[
            ("prefilled tag", "fail"),
            ("end token", "fail"),
            ("learning rate", "warn"),
            ("warnings of the start", "warn"),
            ("signal of samples", "fail"),
            ("text prompt of a chat model", "pass"),
            ("length limits", "pass"),
            ("rows in both files", "pass"),
            ("responses to compare", "pass"),
            ("settings against the aim", "pass"),
        ],
    );
    run(
        "+reward.function_kwargs.think_format_reward.prefilled=true actor_rollout_ref.actor.optim.lr_warmup_steps=100 \
         data.max_response_length=8 --sample 0",
        data(&chats, &others),
        &think,
        &[("prefilled tag", "pass"), ("learning rate", "fail"), ("end token", "pass")],
    );
    let twice = model(folder, "twice", "data/arithmetic/model", |text| {
        text.replace("\"chat_template\": \"", "\"chat_template\": \"{{ bos_token }}{{ bos_token }}")
    });
    run("data.max_response_length=8 --sample 0", data(&chats, &others), &twice, &[("begin token", "warn")]);
}

#[test]
fn rows_that_teach_nothing_are_found_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long = "1+".repeat(20);
    // One row in ten has a prompt beyond the limit; in the second file, three have.
    let rows = |every: usize| (0..30).map(move |i| (i, i % 10 < every)).collect::<Vec<_>>();
    let sft = |every| {
        rows(every)
            .into_iter()
            .map(|(i, bad)| json!({"prompt": if bad { long.clone() } else { format!("{i}+1=") }, "response": "7"}))
    };
    let dpo = |every| {
        rows(every)
            .into_iter()
            .map(|(i, bad)| json!({"prompt": format!("{i}+1="), "chosen": "1", "rejected": if bad { "1" } else { "2" }}))
    };
    for (every, verdict) in [(0, "pass"), (1, "warn"), (3, "fail")] {
        let train = format!("data.train_files={}", write(folder, "sft.jsonl", sft(every)));
        let common = ["data.val_files=null", "data.train_batch_size=8", "trainer.total_training_steps=4", "data.max_length=16"];
        let words = [
            &["sft", "--config", "arithmetic/first_sft.yaml", &train, "data.prompt_key=prompt", "data.response_key=response"],
            &common[..],
        ];
        let keys = ["data.prompt_dict_keys=null", "data.response_dict_keys=null", "data.truncation=right"];
        expect(&[words.concat(), keys.to_vec()].concat(), &[("rows without a trained token", verdict)]);
        let train = format!("data.train_files={}", write(folder, "dpo.jsonl", dpo(every)));
        let words = [&["--config", "arithmetic/first_dpo.yaml", &train], &common[..]].concat();
        expect(&words, &[("pairs that do not differ", verdict)]);
    }
}

/// Every recipe that runs without downloads has no fault. A reward that does not depend on the response is one.
#[test]
fn shipped_recipes_have_no_fault() {
    let recipes = ["dapo", "distill", "dpo", "online_dpo", "ppo", "prm", "reward_model", "rloo_trl", "rm", "sft"];
    let recipes = recipes.map(|name| format!("recipes/arithmetic/{name}.yaml"));
    let recipes = recipes.iter().map(String::as_str).chain([
        "ppo_trainer.yaml",
        "recipes/calculator/grpo.yaml",
        "recipes/calculator/sft.yaml",
    ]);
    std::thread::scope(|scope| {
        for recipe in recipes {
            scope.spawn(move || {
                let (verdicts, code) = doctor(&[recipe]);
                assert_eq!(code, Some(0), "{recipe}: {verdicts:?}");
                assert_ne!(verdicts.get("paid length").map(String::as_str), Some("warn"), "{recipe}");
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("constant.py");
    fs::write(&path, "def constant(completions, **columns):\n    return [0.7 for _ in completions]\n").unwrap();
    let path = format!("custom_reward_function.path={}", path.display());
    expect(&["ppo_trainer.yaml", &path, "custom_reward_function.name=constant"], &[("signal of samples", "fail")]);
}

/// A bonus per character warns, and fails if it pays more than the answer. A penalty, and a bonus that only right answers earn
/// up to a length that they have anyway, pass.
#[test]
fn rewards_that_pay_for_length_are_found_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("length.py");
    let code = "def right(text, truth):\n    return float(truth in text)\n\n\n\
        def mild(solution_str, ground_truth, **_):\n    return right(solution_str, ground_truth) + 0.02 * len(solution_str)\n\n\n\
        def strong(solution_str, ground_truth, **_):\n    return right(solution_str, ground_truth) + 0.2 * len(solution_str)\n\n\n\
        def penalty(solution_str, ground_truth, **_):\n    return right(solution_str, ground_truth) - 0.02 * len(solution_str)\n\n\n\
        def bounded(solution_str, ground_truth, **_):\n    return right(solution_str, ground_truth) + 0.01 * min(len(solution_str), 3)\n";
    fs::write(&path, code).unwrap();
    let path = format!("custom_reward_function.path={}", path.display());
    for (name, verdict) in [("mild", "warn"), ("strong", "fail"), ("penalty", "pass"), ("bounded", "pass")] {
        let name = format!("custom_reward_function.name={name}");
        expect(&["ppo_trainer.yaml", "data.max_response_length=32", &path, &name], &[("paid length", verdict)]);
    }
}
