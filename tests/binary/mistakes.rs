//! Every mistake is one clear error before training: exit code 2, and a message that names the place and the remedy.

use std::path::Path;

use crate::common::trainer;

/// Each entry: (name of the mistake, arguments, parts of the message)
pub(crate) const MISTAKES: &[(&str, &[&str], &[&str])] = &[
    ("wrong key", &["algorithm.adv_estimatr=rloo"], &["algorithm.adv_estimatr", "algorithm.adv_estimator"]),
    ("wrong type", &["actor_rollout_ref.rollout.n=many"], &["actor_rollout_ref.rollout.n", "many"]),
    (
        "no section",
        &["actor_rollout_ref.rollout.multi_turn=true"],
        &["`actor_rollout_ref.rollout.multi_turn` must be a mapping, not the bool `true`"],
    ),
    ("missing file", &["data.train_files=no/such.parquet"], &["data.train_files", "no/such.parquet"]),
    ("missing column", &["data.prompt_key=question"], &["question", "prompt", "train.parquet"]),
    (
        "indivisible batch",
        &["data.train_batch_size=64", "actor_rollout_ref.actor.ppo_mini_batch_size=24"],
        &["ppo_mini_batch_size", "24", "64"],
    ),
    ("unknown estimator", &["algorithm.adv_estimator=rlo"], &["rlo", "rloo", "grpo", "reinforce_plus_plus"]),
    ("no critic", &["algorithm.adv_estimator=gae", "critic.enable=false"], &["`gae` needs the critic", "rloo or grpo"]),
    ("no reward model", &["reward_model.enable=true"], &["reward_model.model.path", "FOLDER"]),
    (
        "a reward model that does not count",
        &[
            "reward_model.enable=true",
            "reward_model.model.path=data/arithmetic/reward_model",
            "reward_model.reward_functions=gsm8k",
        ],
        &["reward_model.reward_functions", "[gsm8k,reward_model]"],
    ),
    ("a reward function without its model", &["reward_model.reward_functions=[reward_model]"], &["reward_model.enable"]),
    (
        "no head that scores",
        &["reward_model.enable=true", "reward_model.model.path=data/arithmetic/model"],
        &["reward_model.model.path", "ForSequenceClassification"],
    ),
    (
        "too long for the reward model",
        &["reward_model.enable=true", "reward_model.model.path=data/arithmetic/reward_model", "reward_model.max_length=65"],
        &["reward_model.max_length is 65", "max_position_embeddings 64"],
    ),
    ("missing config", &["--config", "ppo_trainr.yaml"], &["ppo_trainr.yaml", "ppo_trainer"]),
    ("missing model", &["actor_rollout_ref.model.path=no/model"], &["actor_rollout_ref.model.path", "no/model"]),
    (
        "a name of the Hub",
        &["actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B"],
        &["HF_HUB_OFFLINE", "trainer fetch Qwen/Qwen2.5-0.5B", "hf download Qwen/Qwen2.5-0.5B --local-dir FOLDER"],
    ),
    (
        "swept names",
        &["--multirun", "trainer.experiment_name=a,b"],
        &["`trainer.experiment_name` cannot be swept", "named by its swept values"],
    ),
    (
        "problems of several jobs",
        &["--multirun", "data.seed=1,x", "algorithm.adv_estimator=grpo,grppo", "data.sedd=1"],
        &["data.seed", "grppo", "data.sedd"],
    ),
    ("a sweep that resumes nothing", &["-m", "data.seed=1..2", "trainer.resume_mode=disable"], &["must be auto"]),
    (
        "a folder of all jobs",
        &["-m", "data.seed=1..2", "trainer.rollout_data_dir=rows"],
        &["${trainer.default_local_dir}/rollout_data_dir"],
    ),
    ("an interval", &["-m", "data.seed=interval(0,1)"], &["`interval(…)`", "range(start,stop,step)"]),
    ("jobs of no sweep", &["--jobs", "2", "data.seed=1"], &["--multirun"]),
    (
        "missing weights",
        &["actor_rollout_ref.model.path=tests/data/no-weights", "data.tokenizer=data/arithmetic/model"],
        &["model.safetensors", "random"],
    ),
    (
        "no scorer",
        &["data.val_files=tests/data/unknown-source.jsonl"],
        &["custom/source", "openai/gsm8k", "custom_reward_function.path=FILE"],
    ),
    ("overlong prompt", &["data.max_prompt_length=3"], &["data.max_prompt_length", "filter_overlong_prompts", "truncation"]),
    ("unknown tracker", &["trainer.logger=[console,wandbb]"], &["trainer.logger", "wandbb", "console"]),
    (
        "bad resume path",
        &["trainer.resume_mode=resume_path", "trainer.resume_from_path=nowhere/global_step_3"],
        &["resume_from_path", "nowhere"],
    ),
    #[cfg(not(feature = "cuda"))]
    ("no CUDA", &["trainer.device=cuda"], &["trainer.device=cuda:0", "--features cuda", "another device: cpu"]),
    #[cfg(not(feature = "vulkan"))]
    ("no Vulkan", &["trainer.device=vulkan:1"], &["trainer.device=vulkan:1", "--features vulkan", "another device: cpu"]),
    (
        "float16",
        &["actor_rollout_ref.model.dtype=fp16"],
        &["`actor_rollout_ref.model.dtype`: float16", "write bfloat16, or float32"],
    ),
];

/// The recipe of a mistake without another configuration.
pub(crate) const TASK: [&str; 2] = ["--config", "arithmetic/first.yaml"];

#[test]
fn mistakes_are_named_and_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (label, arguments, expected) in MISTAKES {
        let run = folder.path().join(label);
        let mut command = trainer(arguments);
        if !arguments.contains(&"--config") {
            command.args(TASK);
        }
        command.arg(format!("trainer.default_local_dir={}", run.display()));
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{label}: {message}");
        assert_eq!(message.matches("error:").count(), 1, "{label}: {message}");
        for part in *expected {
            assert!(message.contains(part), "{label}: the message does not mention {part}:\n{message}");
        }
        assert!(!message.contains("panicked"), "{label}: {message}");
        assert!(output.stdout.is_empty(), "{label} printed {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// 100,000 opening brackets of every kind, in every input: on the command line, in configurations, scripts and data.
#[test]
fn what_is_nested_too_deeply_is_named() {
    const MANY: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let refused = |label: &str, arguments: &[&str]| {
        let mut command = trainer(arguments);
        // The main thread's stack is only a little larger than the others', as in a run.
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        let start: String = message.chars().take(400).collect();
        assert_eq!(output.status.code(), Some(2), "{label}: {start}");
        assert_eq!(message.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{label}: {start}");
        assert!(!message.contains("panicked"), "{label}: {start}");
    };
    let local = format!("trainer.default_local_dir={}", at("run"));
    for opens in ["[", "{a:", "${", "${oc.env:", "int(", "'[", "a.", "-", "json_str("] {
        // Linux allows 128 KB in one argument.
        let text = opens.repeat((MANY / opens.len()).min(MANY));
        for word in
            [format!("data.prompt_key={text}"), format!("+data.x={text}"), format!("+{text}a=1"), format!("~data.{text}a")]
        {
            refused(&word[..20], &[&word, &local]);
        }
    }
    for (opens, middle, closes) in [
        ("[", "", "]"),
        ("{a: ", "1", "}"),
        ("- ", "1", ""),
        ("? ", "1", ""),
        ("${", "a", "}"),
        ("'${", "a", "}'"),
        ("&a [", "", "]"),
        ("!a ", "1", ""),
        ("<<: {", "", "}"),
    ] {
        for closes in [closes, ""] {
            let text = format!("data:\n  x: {}{middle}{}\n", opens.repeat(MANY), closes.repeat(MANY));
            for text in [&text, &text["data:\n  x: ".len()..]] {
                std::fs::write(at("deep.yaml"), text).unwrap();
                refused(&format!("a file of {opens:?}"), &["--config", &at("deep.yaml"), &local]);
            }
        }
    }
    for opens in ["[", "{\"a\":"] {
        std::fs::write(at("deep.jsonl"), format!("{{\"prompt\": {}", opens.repeat(MANY))).unwrap();
        refused("a row", &[TASK[0], TASK[1], &format!("data.train_files={}", at("deep.jsonl")), &local]);
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"] {
            let model = folder.path().join("model");
            std::fs::create_dir_all(&model).unwrap();
            for file in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
                _ = std::fs::copy(Path::new("data/arithmetic/model").join(file), model.join(file));
            }
            if name.contains("index") {
                std::fs::remove_file(model.join("model.safetensors")).unwrap();
            }
            std::fs::write(model.join(name), opens.repeat(MANY)).unwrap();
            refused(name, &[TASK[0], TASK[1], &format!("actor_rollout_ref.model.path={}", model.display()), &local]);
        }
    }
    for opens in ["${A:-", "$((", "$((1+(", "$(", "`", "\"$(", "if true; then ", "f() { "] {
        let script = format!("A={}\npython3 -m verl.trainer.main_ppo data.x=$A\n", opens.repeat(MANY));
        std::fs::write(at("deep.sh"), script).unwrap();
        let output = trainer(&["from-verl", &format!("@{}", at("deep.sh"))]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{opens}: {:?}", output.status);
    }
}
