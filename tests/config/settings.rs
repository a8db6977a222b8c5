//! The configuration language: composition, overrides, interpolation, types, messages.

use burnish::cli::choices;
use burnish::config::schema::{DataTruncation, Device, EvalConfig, GenerationConfig, Interface};
use burnish::config::{
    BatchPlan, Choices, ConfigError, Kind, Loaded, MicroBatch, PpoConfig, Request, SftConfig, Value, embedded, load,
};
use burnish::model::gpu_backends::GPU_BACKENDS;
use burnish::registry::Choice;
use std::path::Path;

fn request(overrides: &[&str]) -> Request {
    Request { overrides: overrides.iter().map(|text| text.to_string()).collect(), ..Request::default() }
}

fn ppo(overrides: &[&str]) -> Result<Loaded<PpoConfig>, ConfigError> {
    load::<PpoConfig>(&request(overrides), &choices(Kind::Rl))
}

/// Loads a file with this text, written as `run.yaml` into a separate folder.
fn ppo_file(text: &str, overrides: &[&str]) -> Result<Loaded<PpoConfig>, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.yaml");
    std::fs::write(&path, text).unwrap();
    load::<PpoConfig>(&Request { config: Some(path.display().to_string()), ..request(overrides) }, &choices(Kind::Rl))
}

/// The error's message must contain all `parts`.
fn assert_says<T>(result: Result<T, ConfigError>, parts: &[&str]) {
    let message = match result {
        Ok(_) => panic!("accepted, though it should say {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(message.contains(part), "no {part:?} in:\n{message}");
    }
}

fn leaves(value: &serde_json::Value, key: String, into: &mut Vec<String>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => map.iter().for_each(|(k, v)| leaves(v, if key.is_empty() { k.clone() } else { format!("{key}.{k}") }, into)),
        None => into.push(key),
    }
}

#[test]
fn defaults_load_and_every_key_has_a_field_and_the_reverse() {
    let loaded = ppo(&[]).unwrap();
    let sft = load::<SftConfig>(&request(&[]), &choices(Kind::Sft)).unwrap();
    let generation = load::<GenerationConfig>(&request(&[]), &Choices::default()).unwrap();
    let evaluation = load::<EvalConfig>(&request(&[]), &Choices::default()).unwrap();
    assert!(loaded.ignored.is_empty() && sft.ignored.is_empty());
    for (yaml, config) in [
        (generation.tree.to_yaml(), serde_json::to_value(&generation.config).unwrap()),
        (evaluation.tree.to_yaml(), serde_json::to_value(&evaluation.config).unwrap()),
        (loaded.tree.to_yaml(), serde_json::to_value(&loaded.config).unwrap()),
        (sft.tree.to_yaml(), serde_json::to_value(&sft.config).unwrap()),
    ] {
        let (mut in_yaml, mut in_struct) = (vec![], vec![]);
        leaves(&serde_yaml::from_str::<serde_json::Value>(&yaml).unwrap(), String::new(), &mut in_yaml);
        leaves(&config, String::new(), &mut in_struct);
        in_yaml.sort();
        in_struct.sort();
        assert_eq!(in_yaml, in_struct);
    }
    assert_eq!(loaded.config.trainer.default_local_dir.to_string(), "checkpoints/burnish_examples/arithmetic");
    assert_eq!(loaded.config.actor_rollout_ref.actor.optim.lr, 4e-4);
    assert_eq!(loaded.config.critic.optim.lr, 1e-5);
}

#[test]
fn the_resolved_tree_loads_again_to_the_same_configuration() {
    let first =
        ppo(&["data.apply_chat_template_kwargs={}", "+data.apply_chat_template_kwargs.think=false", "trainer.device=cuda:1"])
            .unwrap();
    let second = ppo_file(&first.tree.to_yaml(), &[]).unwrap();
    assert_eq!(first.config, second.config);
    assert_eq!(second.config.trainer.device, Device::Gpu(Interface::Cuda, 1));
}

#[test]
fn every_interface_is_a_device_with_and_without_a_number() {
    assert_eq!(Interface::ALL.map(Interface::as_str), GPU_BACKENDS);
    let device = |text: &str| ppo(&[&format!("trainer.device={text}")]).map(|loaded| loaded.config.trainer.device);
    assert_eq!(device("cpu").unwrap().to_string(), "cpu");
    for interface in Interface::ALL {
        for (index, written) in [(0, interface.as_str().to_owned()), (3, format!("{}:3", interface.as_str()))] {
            let read = device(&written).unwrap();
            assert_eq!(read, Device::Gpu(interface, index));
            // Its output can be parsed again.
            assert_eq!(device(&read.to_string()).unwrap(), read);
        }
    }
    for wrong in ["cuda:x", "cuda:-1", "cpu:0", "wgpu:0:1", "CUDA"] {
        assert_says(
            device(wrong),
            &["`trainer.device` must be cpu, or cuda, rocm, metal, vulkan or wgpu", "it takes cpu | cuda | cuda:N"],
        );
    }
}

#[test]
fn bfloat16_is_chosen_where_the_interface_has_it() {
    let chosen = |device: &str, dtype: &str| {
        let loaded = ppo(&[&format!("trainer.device={device}"), &format!("actor_rollout_ref.model.dtype={dtype}")]).unwrap();
        loaded.config.actor_rollout_ref.model.dtype.is_bfloat16(loaded.config.trainer.device)
    };
    for (device, auto) in [("cpu", false), ("cuda", true), ("rocm:1", true), ("metal", true), ("vulkan", false), ("wgpu", false)]
    {
        assert_eq!(["auto", "float32", "bfloat16"].map(|dtype| chosen(device, dtype)), [auto, false, true], "{device}");
    }
}

#[test]
fn every_embedded_file_is_the_one_in_the_folder_and_explains_every_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut found = vec![];
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let name = path.strip_prefix(&root).unwrap().with_extension("");
                found.push((name.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    let table: Vec<(String, String)> = embedded::FILES.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let names = |files: &[(String, String)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&table), names(&found));
    for ((name, built_in), (_, file)) in table.iter().zip(&found) {
        assert!(built_in == file, "{name} is not what is built in");
    }
    for (name, text) in found.iter().filter(|(name, _)| !name.starts_with("verl/")) {
        for pair in text.lines().collect::<Vec<_>>().windows(2) {
            let is_key = pair[1].contains(':') && !pair[1].trim_start().starts_with(['-', '#']) && pair[1] != "defaults:";
            assert!(!is_key || pair[0].trim_start().starts_with("# "), "{name}: no comment above `{}`", pair[1]);
        }
    }
}

#[test]
fn overrides_reach_their_fields() {
    let loaded = ppo(&[
        "data.train_files=['a b.parquet', c.json]",
        "data.val_files=d.parquet",
        "actor_rollout_ref.model.path=m",
        "data.truncation=middle",
        "trainer.logger=console",
        "actor_rollout_ref.actor.optim.lr=1_000",
        "actor_rollout_ref.actor.clip_ratio_high=0.28",
        "actor_rollout_ref.actor.optim.betas.1=0.95",
        "algorithm.kl_ctrl={type: adaptive, kl_coef: 1e-4}",
        "++trainer.seed=7",
        "trainer.seed=8",
        "trainer.project_name=x_${trainer.experiment_name}_y",
    ])
    .unwrap();
    let config = &loaded.config;
    assert_eq!(config.data.train_files.iter().map(|file| file.to_string()).collect::<Vec<_>>(), ["a b.parquet", "c.json"]);
    assert_eq!(config.data.val_files.as_deref().map(<[_]>::len), Some(1));
    assert_eq!(config.data.truncation, DataTruncation::Middle);
    assert_eq!(config.trainer.logger.0, ["console"]);
    let actor = &config.actor_rollout_ref.actor;
    assert_eq!((actor.optim.lr, actor.clip_low(), actor.clip_high(), actor.optim.betas), (1000.0, 0.2, 0.28, [0.9, 0.95]));
    assert_eq!((config.algorithm.kl_ctrl.kl_coef, config.algorithm.kl_ctrl.horizon), (1e-4, 10000));
    assert_eq!((config.trainer.seed, config.trainer.project_name.as_str()), (8, "x_rl_y"));
    assert_eq!(loaded.tree.origin("trainer.seed").unwrap().to_string(), "override `trainer.seed=8`");
    let (_, text) = embedded::FILES.iter().find(|(name, _)| *name == "data/legacy_data").unwrap();
    let line = 1 + text.lines().position(|line| line.starts_with("shuffle:")).unwrap();
    let origin = loaded.tree.origin("data.shuffle").unwrap().to_string();
    assert!(origin.ends_with(&format!("config/data/legacy_data.yaml:{line}:10")), "{origin}");
}

#[test]
fn wrong_overrides_say_what_to_do() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["actor_rollout_ref.actor.clip_ration=0.2"],
            &["no such key `actor_rollout_ref.actor.clip_ration`", "`actor_rollout_ref.actor.clip_ratio`?"],
        ),
        (&["actor.optim.lr=1"], &["did you mean `actor_rollout_ref.actor.optim.lr`?"]),
        (&["+trainer.sed=1"], &["no such key `trainer.sed`", "did you mean `trainer.seed`?", "override `+trainer.sed=1`"]),
        // verl's own file has the key, so verl refuses it too; a key that it lacks (`+trainer.seed`) would be added.
        (&["+data.seed=2"], &["`data.seed` already exists", "data.seed=…"]),
        (&["~trainer.nope"], &["no such key `trainer.nope`"]),
        (&["~trainer.seed"], &["`trainer.seed` cannot be deleted", "its default is 1", "override `~trainer.seed`"]),
        (&["~data.tokenizer"], &["`data.tokenizer` cannot be deleted"]),
        (&["trainer.logger=console,file"], &["[a,b]"]),
        (&["trainer.logger=[a,]"], &["a value is missing"]),
        (&["trainer.logger[0]=x"], &["key.0=value"]),
        (&["trainer.seed"], &["key=value"]),
        (&["data.apply_chat_template_kwargs={a: 1}"], &["no such key `data.apply_chat_template_kwargs.a`"]),
        (
            &["data.train_batch_size=abc"],
            &[
                "`data.train_batch_size` must be an integer of at least 0, not the string `abc`",
                "override `data.train_batch_size=abc`",
            ],
        ),
        (&["data.train_batch_size=64.0"], &["must be an integer", "write 64"]),
        (
            &["+custom_reward_function.reward_kwargs.limits={most: [1, inf]}"],
            &["`custom_reward_function.reward_kwargs.limits.most.1` is .inf", "write it as text", "override `+custom_reward"],
        ),
        (&["+data.apply_chat_template_kwargs.x=354224848179261915075"], &["does not fit in 64 bits"]),
        (&["data.train_batch_size=-1"], &["an integer of at least 0, not the integer `-1`"]),
        (&["data.chat_template_date=tomorrow"], &["`data.chat_template_date` must be a date, or", "write it as 2025-01-31"]),
        (&["data.shuffle=yes"], &["`data.shuffle` must be a bool, not the string `yes`", "write true"]),
        (&["data.prompt_key=123"], &["must be a string, not the integer `123`", "'data.prompt_key=\"123\"'"]),
        (&["data.truncation=midle"], &["must be one of error, left, right, middle", "did you mean `middle`?"]),
        (
            &["trainer.device=gpu"],
            &["must be cpu, or cuda, rocm, metal, vulkan or wgpu, with :N", "override `trainer.device=gpu`"],
        ),
        (&["trainer.device=mps"], &["`trainer.device` must be metal, which PyTorch calls mps", "the string `mps`"]),
        (&["trainer.device=wgpu:+1"], &["`trainer.device` must be cpu, or cuda", "the string `wgpu:+1`"]),
        (&["actor_rollout_ref.model.dtype=half"], &["`actor_rollout_ref.model.dtype`: float16", "float32"]),
        (&["trainer.logger=[console,[1]]"], &["`trainer.logger.1` must be a string"]),
        (&["algorithm.kl_ctrl=null"], &["must be a mapping, not null"]),
        (&["data=5"], &["`data` is a group", "`data` has: legacy_data", "override `data=5`"]),
        (&["data.train_files="], &["`data.train_files` must be a path, not empty"]),
        (&["data.train_files=['$DATA/train.parquet']"], &["`data.train_files.0` contains `$DATA`", "single quotes"]),
        (&["actor_rollout_ref.actor.ppo_epochs=x"], &["`actor_rollout_ref.actor.ppo_epochs` must be"]),
        (&["trainer.seed=${trainer.project_name}"], &["`trainer.seed` must be", "comes from `trainer.project_name`"]),
        (&["critic=other"], &["there is no configuration `critic/other`", "`critic` has: dp_critic", "override `critic=other`"]),
        (&["actor@actor_rollout_ref.actr=dp_actor"], &["the group `actor@actor_rollout_ref.actr`", "`defaults:` list"]),
        (
            &["data.max_prompt_length=${trainer.nope}"],
            &["`data.max_prompt_length` refers to `trainer.nope`, which does not exist"],
        ),
        (
            &["trainer.seed=${data.seed}", "data.seed=${trainer.seed}"],
            &["refer to each other", "trainer.seed → data.seed → trainer.seed"],
        ),
        (&["trainer.project_name=???"], &["`trainer.project_name` must be given"]),
        (&["trainer.project_name=${oc.env:BURNISH_NOT_SET}"], &["environment variable `BURNISH_NOT_SET`"]),
        (
            &["critic=other", "data.nope=1", "trainer.seed=x", "data.shuffle=1", "++a=]"],
            &["5 problems", "critic/other", "data.nope", "trainer.seed", "data.shuffle", "`]`"],
        ),
    ];
    for (overrides, parts) in cases {
        assert_says(ppo(overrides), parts);
    }
    for text in ["actor_rollout_ref.actor.ppo_epochs=x", "trainer.project_name=${nope}", "critic.checkpoint.save_contents=[x]"] {
        let followed = ppo(&[text]).unwrap_err();
        assert_eq!(followed.problems.len(), 1, "keys that follow a wrong one are not wrong themselves:\n{followed}");
    }
}

#[test]
fn what_is_not_available_is_refused() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["algorithm.adv_estimator=gae", "critic.enable=false"], &["needs the critic", "rloo or grpo"]),
        (&["critic.enable=true", "critic.ppo_mini_batch_size=5"], &["`critic.ppo_mini_batch_size` is 5, which does not divide"]),
        (&["critic.enable=true", "critic.cliprange_value=0"], &["`critic.cliprange_value` must be above 0"]),
        (&["reward_model.reward_manager=batch"], &["`batch` calls `custom_reward_function`", "custom_reward_function.path=FILE"]),
        (
            &["custom_reward_function.path=f.py", "reward_model.remote_url=http://h"],
            &["which of them make the score", "reward_model.reward_functions=[compute_score,remote]"],
        ),
        (
            &["custom_reward_function.path=f.py", "reward_model.reward_functions=gsm8k"],
            &["does not name `compute_score`, so it would not count", "[gsm8k,compute_score]"],
        ),
        (&["reward_model.reward_functions=[remote]"], &["names `remote`, but `reward_model.remote_url` is not set"]),
        (&["reward.on_error=skip"], &["`reward.on_error` must be one of error, abstain, value"]),
        (&["algorithm.adv_estimator=gdpo"], &["normalises several rewards", "gdpo_reward_keys=[…]"]),
        (&["algorithm.rollout_correction=token"], &["`algorithm.rollout_correction` must be a mapping, not the string `token`"]),
        (&["algorithm.rollout_correction.rollout_rs_threshold=0.5_2"], &["is the number 0.52", "quotes, or 0.5_2.0"]),
        (
            &["algorithm.adv_estimator=trl_gdpo", "algorithm.gdpo_reward_keys=[acc]", "algorithm.missing_eos_penalty=1"],
            &["reads the rewards one by one"],
        ),
        (&["algorithm.adv_estimator=dr_grpo", "algorithm.whiten_rewards=true"], &["scores and KL terms apart"]),
        (&["algorithm.adv_estimator=remax", "algorithm.normalize_reward=true"], &["those of greedy responses"]),
        (&["algorithm.whiten_rewards=true", "algorithm.mask_truncated_completions=true"], &["would get no reward"]),
        (
            &["actor_rollout_ref.actor.policy_loss.loss_mode=vespo", "algorithm.rollout_correction.rollout_is=sequence"],
            &["must be per token", "rollout_is=token"],
        ),
        (&["reward_model.reward_manager=limited"], &["`reward_model.reward_manager` must be one of naive, dapo, prime, batch"]),
        (&["algorithm.filter_groups.enable=true"], &["needs `algorithm.filter_groups.metric`"]),
        (&["algorithm.reward_clip_range=[1,-1]"], &["low below high"]),
        (&["actor_rollout_ref.actor.policy_loss.loss_mode=dro"], &["policy_loss.dro_beta=1.0"]),
        (&["actor_rollout_ref.actor.policy_loss.loss_mode=bypass_mode"], &["rollout_correction.bypass_mode=true"]),
        (
            &["algorithm.rollout_correction.bypass_mode=true", "actor_rollout_ref.actor.policy_loss.loss_mode=gspo"],
            &["not `gspo`", "rollout_correction.loss_type"],
        ),
        (
            &["reward_model.reward_kwargs.overlong_buffer_cfg.enable=true"],
            &["from 1 to max_resp_len (8), not 0", "reward_manager=dapo"],
        ),
        (&["reward_model.reward_weights=[1,2]"], &["has 2 numbers, but `reward_model.reward_functions` has 1 names"]),
        (&["actor_rollout_ref.rollout.n=1"], &["`rloo` compares the responses", "rollout.n=2"]),
        (&["actor_rollout_ref.rollout.temperature=0"], &["rollout.temperature` must be from 0.01 to 1000"]),
        (&["actor_rollout_ref.rollout.response_length=9"], &["set only data.max_response_length"]),
        (
            &["actor_rollout_ref.actor.use_dynamic_bsz=true", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=9"],
            &["24 tokens"],
        ),
        (&["actor_rollout_ref.actor.optim.lr=nan"], &["0 or above"]),
        (&["trainer.resume_mode=resume_path"], &["resume_from_path"]),
        (&["algorithm.normalize_advantages=null"], &["it takes none | sequences | tokens"]),
        (&["actor_rollout_ref.model.path=~/model"], &["put the text in quotes", "$HOME"]),
        (
            &[
                "actor_rollout_ref.model.lora_rank=8",
                "actor_rollout_ref.model.init=random",
                "actor_rollout_ref.model.lora_alpha=0",
            ],
            &["2 problems", "lora_alpha` must be above 0", "LoRA adapts a pretrained model", "init=pretrained"],
        ),
    ];
    for (overrides, parts) in cases {
        assert_says(ppo(overrides), parts);
    }
    assert_says(
        load::<SftConfig>(&request(&["model.external_lib=x", "trainer.save_freq=after_epoch"]), &choices(Kind::Sft)),
        &["2 problems", "may run Python code", "`trainer.save_freq` must be an integer or after_each_epoch"],
    );
    ppo(&[
        "algorithm.adv_estimator=reinforce_plus_plus",
        "actor_rollout_ref.rollout.n=1",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64",
    ])
    .unwrap();
}

#[test]
fn a_number_is_a_name_too() {
    let named = |value: &str| {
        let config = ppo(&[&format!("trainer.experiment_name={value}")]).unwrap().config;
        (config.trainer.experiment_name, config.trainer.default_local_dir.to_string())
    };
    for (written, name) in [("2024", "2024"), ("nan", "nan"), ("1e-3", "0.001"), ("run", "run")] {
        assert_eq!(named(written), (name.to_owned(), format!("checkpoints/burnish_examples/{name}")));
    }
}

#[test]
fn names_that_a_registry_knows_are_checked_with_their_origin() {
    let known = [("algorithm.adv_estimator", ["rloo", "grpo"]), ("trainer.logger", ["console", "file"])];
    let choices: Choices = known.iter().flat_map(|(key, names)| names.map(|name| Choice::plain(key, name))).collect();
    load::<PpoConfig>(&request(&[]), &choices).unwrap();
    let wrong = load::<PpoConfig>(&request(&["algorithm.adv_estimator=rlo", "trainer.logger=[console,wandbb]"]), &choices);
    assert_says(
        wrong,
        &[
            "must be one of rloo, grpo, not `rlo`",
            "did you mean `rloo`?",
            "must be one of console, file, not `wandbb`",
            "override `trainer.logger",
        ],
    );
}

#[test]
fn recipes_build_on_the_embedded_files_and_errors_point_into_them() {
    let recipe = "# a recipe\ndefaults:\n  - /ppo_trainer\n  - _self_\nhydra:\n  searchpath: [file://nowhere]\n  run: {dir: elsewhere}\ndata:\n  train_batch_size: 32\nactor_rollout_ref:\n  actor:\n    ppo_mini_batch_size: 32\n    optim: {lr: 5e-5}\n";
    let loaded = ppo_file(recipe, &["data.train_batch_size=96"]).unwrap();
    assert_eq!((loaded.config.data.train_batch_size, loaded.config.actor_rollout_ref.actor.optim.lr), (96, 5e-5));
    assert!(loaded.tree.origin("actor_rollout_ref.actor.optim.lr").unwrap().to_string().ends_with("run.yaml:13:17"));
    assert_eq!(loaded.ignored.iter().map(|i| i.key.as_str()).collect::<Vec<_>>(), ["hydra.run"]);

    let cases = [
        (
            "defaults: [ppo_trainer, _self_]\ndata:\n  train_batchsize: 3\n",
            vec!["run.yaml:3:3", "data.train_batch_size", "3 |   train_batchsize: 3", "^"],
        ),
        ("defaults: [ppo_trainer]\ndata:\n  shuffle: onn\n", vec!["run.yaml:3:12", "true or false"]),
        (
            "defaults: [ppo_trainer]\ntrainer:\n  project_name: no\n",
            vec!["not the bool `false`", "`no` means false in YAML", "\"no\""],
        ),
        ("defaults: [ppo_trainer]\ntrainer:\n  resume_from_path: None\n", vec!["run.yaml:3:21", "the string `None`", "=null"]),
        ("defaults: [ppo_trainer]\nactor_rollout_ref: {actor: {optim: {lr: 1e-6x}}}\n", vec!["run.yaml:2:41", "such as 1e-6"]),
        ("defaults: [ppo_trainr]\n", vec!["no configuration `ppo_trainr`", "did you mean `ppo_trainer`?", "run.yaml:1:12"]),
        ("defaults: [run]\n", vec!["`run` includes itself"]),
        ("data: 1\ndata: 2\n", vec!["the key `data`", "twice", "run.yaml:2:1"]),
        ("data: [1\n", vec!["this is not YAML", "run.yaml:"]),
        ("hydra: {searchpath: [pkg://verl]}\n", vec!["hydra.searchpath", "file://FOLDER", "run.yaml:1:22"]),
        ("defaults: [ppo_trainer]\ndata:\n  prompt_key: ${${algorithm}}\n", vec!["data.prompt_key", "is a mapping"]),
        (
            "defaults: [ppo_trainer, _self_]\ntrainer: &t\n  seed: 1.5\n",
            vec!["`trainer.seed` must be an integer", "run.yaml:3:9"],
        ),
    ];
    for (text, parts) in cases {
        assert_says(ppo_file(text, &[]), &parts);
    }
    // Without `_self_`, the file's own keys come last; with `_self_` first, the included file wins.
    assert_eq!(ppo_file("defaults: [ppo_trainer]\ntrainer: {seed: 9}\n", &[]).unwrap().config.trainer.seed, 9);
    assert_eq!(ppo_file("defaults: [_self_, ppo_trainer]\ntrainer: {seed: 9}\n", &[]).unwrap().config.trainer.seed, 1);
}

#[test]
fn groups_packages_and_search_folders() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "ppo_trainer.yaml",
        "defaults:\n  - /ppo_trainer\n  - seeds@trainer: nine\n  - wide\n  - _self_\n  - override /optim@actor_rollout_ref.actor.optim: big\n",
    );
    write("optim/big.yaml", "defaults:\n  - adamw\n  - _self_\nlr: 0.5\n");
    write("seeds/nine.yaml", "seed: 9\n");
    write("wide.yaml", "# @package _global_\ndata:\n  max_response_length: 77\n");
    write("trainer/long.yaml", "defaults: [default, _self_]\ntotal_epochs: 99\n");
    let with = |overrides: &[&str]| {
        let request =
            Request { config_name: Some("ppo_trainer".into()), config_path: Some(folder.path().into()), ..request(overrides) };
        load::<PpoConfig>(&request, &choices(Kind::Rl)).unwrap_or_else(|error| panic!("{error}")).config
    };
    let config = with(&[]);
    assert_eq!((config.actor_rollout_ref.actor.optim.lr, config.critic.optim.lr), (0.5, 1e-5));
    assert_eq!((config.trainer.seed, config.actor_rollout_ref.rollout.response_length), (9, 77));
    assert_eq!(with(&["trainer=long"]).trainer.total_epochs, 99);
    assert_eq!(with(&["optim@actor_rollout_ref.actor.optim=adamw"]).actor_rollout_ref.actor.optim.lr, 4e-4);
    assert_eq!(with(&["+seeds@data=nine"]).data.seed, Some(9));
    let dirs = Request { config_dirs: vec![folder.path().into()], ..request(&["trainer=long"]) };
    assert_eq!(
        load::<PpoConfig>(&Request { config: Some("ppo_trainer".into()), ..dirs }, &choices(Kind::Rl))
            .unwrap()
            .config
            .trainer
            .total_epochs,
        99
    );
    let missing = Request { config: Some("ppo_trainr.yaml".into()), ..Request::default() };
    assert_says(
        load::<PpoConfig>(&missing, &choices(Kind::Rl)),
        &["no configuration `ppo_trainr.yaml`", "did you mean `ppo_trainer`?", "looked for", "recipes/ppo_trainr.yaml"],
    );
}

#[test]
fn keys_without_effect_are_reported_and_only_when_set() {
    let loaded = ppo(&[
        "actor_rollout_ref.rollout.name=vllm",
        "trainer.nnodes=2",
        "critic.ppo_epochs=4",
        "actor_rollout_ref.actor.ppo_epochs=2",
        "hydra.run.dir=/x",
    ])
    .unwrap();
    let keys: Vec<&str> = loaded.ignored.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["hydra.run.dir", "actor_rollout_ref.rollout.name", "trainer.nnodes"]);
    assert_eq!((loaded.ignored[1].value.as_str(), loaded.ignored[1].reason), ("vllm", "the native engine generates"));
}

#[test]
fn batch_plan_divides_or_says_what_would() {
    let plan = |overrides: &[&str]| ppo(overrides).map(|loaded| BatchPlan::new(&loaded.config).unwrap());
    let default = plan(&[]).unwrap();
    assert_eq!((default.trajectories_per_step, default.actor.mini_batches, default.actor.updates_per_step), (512, 1, 1));
    assert!(default.on_policy() && default.actor.micro_batch == MicroBatch::Trajectories(128));
    assert_eq!(default.to_string().lines().count(), 2);
    let two = plan(&["actor_rollout_ref.actor.ppo_mini_batch_size=32", "actor_rollout_ref.actor.ppo_epochs=3"]).unwrap();
    let actor = two.actor;
    assert_eq!((actor.mini_batches, actor.mini_batch_trajectories, actor.updates_per_step, two.on_policy()), (2, 256, 6, false));
    let cases: &[(&str, &[&str])] = &[
        (
            "actor_rollout_ref.actor.ppo_mini_batch_size=30",
            &["is 30, which does not divide `data.train_batch_size` (64)", "ppo_mini_batch_size=32"],
        ),
        ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=0", &["integer > 0"]),
        ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=null", &["use_dynamic_bsz=true"]),
        ("data.train_batch_size=0", &["at least 1"]),
    ];
    for (text, parts) in cases {
        assert_says(plan(&[text]), parts);
    }
    // The gradient does not depend on the cut: the last micro-batch may be smaller, and one above a mini-batch is the mini-batch.
    for (size, cut, expected) in [(100, 100, "in micro-batches of up to 100"), (4096, 512, "in micro-batches of 512")] {
        let plan = plan(&[&format!("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={size}")]).unwrap();
        assert_eq!(plan.actor.micro_batch, MicroBatch::Trajectories(cut));
        assert!(plan.to_string().ends_with(expected), "{plan}");
    }
}

#[test]
fn home_is_expanded() {
    let loaded = ppo(&["trainer.default_local_dir='~/runs'"]).unwrap();
    assert_eq!(loaded.config.trainer.default_local_dir.to_string(), format!("{}/runs", std::env::var("HOME").unwrap()));
}

#[test]
fn estimators_that_compare_a_group_are_refused_without_one() {
    for estimator in
        burnish::algorithm::advantage::ESTIMATORS.iter().filter(|e| e.needs(burnish::algorithm::advantage::Need::Group))
    {
        for lone in ["actor_rollout_ref.rollout.n=1", "actor_rollout_ref.rollout.do_sample=false"] {
            let choice = format!("algorithm.adv_estimator={}", estimator.name);
            let error = load::<PpoConfig>(&request(&[&choice, lone]), &choices(Kind::Rl)).unwrap_err().to_string();
            assert!(error.contains("compares the responses to one prompt"), "{choice} {lone}: {error}");
        }
    }
}

/// No row calls a key ignored that the program reads.
#[test]
fn settings_are_not_called_ignored() {
    use burnish::config::compat::{self, Kind};
    const UNREAD: &[&str] = &["actor_rollout_ref.rollout.name"];
    let defaults = burnish::config::defaults("ppo_trainer").unwrap();
    let mut seen = 0;
    for key in defaults.keys().iter().filter(|key| defaults.value(key).is_some_and(|value| !matches!(value, Value::Map(_)))) {
        let reason = compat::reason(Kind::Rl, key, defaults.root());
        assert_eq!(reason.is_some(), UNREAD.iter().any(|unread| key.starts_with(unread)), "{key}: {reason:?}");
        seen += 1;
    }
    assert!(seen > 100);
}
