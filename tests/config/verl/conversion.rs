//! Converted commands of verl: groups of frameworks, keys that verl does not read, keys that its files lack.

use super::{built_in, repository, resolve_file, resolved};
use burnish::config::compat::{
    KeyTreatment, Kind, NULL_IS_UNSET, alike, compose_edition, editions, files, fits_key, leaves, module_names, row,
};
use burnish::config::schema::RewardManager;
use burnish::config::{ConfigError, Node, PpoConfig, Request, Tree, Value, load, resolve};
use burnish::convert::from_verl::{self, VerlConversion, VerlSource};
use burnish::convert::shell::ShellEnv;

const PPO: &str = "python3 -m verl.trainer.main_ppo";
const SFT: &str = "torchrun -m verl.trainer.sft_trainer";
const OLD_SFT: &str = "torchrun -m verl.trainer.fsdp_sft_trainer";

fn convert(edition: &str, command: &str) -> Result<VerlConversion, ConfigError> {
    from_verl::convert(&VerlSource { text: command, edition: Some(edition), program: None, env: ShellEnv::for_text("command") })
}

fn converted(edition: &str, command: &str) -> (VerlConversion, Tree) {
    let converted = convert(edition, command).unwrap_or_else(|error| panic!("{edition} {command}: {error}"));
    let tree = resolved(&converted);
    (converted, tree)
}

fn yaml(tree: &Tree, key: &str) -> String {
    tree.value(key).unwrap_or_else(|| panic!("no {key}")).to_yaml()
}

/// The recipe trains with the optimizer settings in a group's file, for every option of every group in every edition.
#[test]
fn the_values_of_a_group_are_taken() {
    let mut choices = 0;
    for edition in editions::EDITIONS {
        for (file, _) in files::of_edition(edition).filter(|(file, _)| file.contains('/')) {
            let (group, option) = file.split_once('/').unwrap();
            let (command, config, kind) = match group {
                "optim" | "engine" if files::find(edition, "sft_trainer_engine").is_some() => {
                    (SFT, "sft_trainer_engine", Kind::Sft)
                }
                "model_engine" | "critic" if !option.starts_with(group) => (PPO, "ppo_trainer", Kind::Rl),
                _ => continue,
            };
            let word = format!("{group}={option}");
            let (found, tree) = converted(edition, &format!("{command} {word}"));
            assert!(found.ignored.iter().any(|one| one.key == group), "{edition} {word}: {:?}", found.ignored);
            let verls = compose_edition(edition, config, std::slice::from_ref(&word)).unwrap().unwrap();
            let written = built_in(kind);
            let mut compared = 0;
            leaves("", &verls, &mut |key, node| {
                let to = row(kind, key, written.root()).map_or(Some(key.to_string()), |row| row.target);
                let Some(to) = to.filter(|to| to.contains("optim.") || to.ends_with("grad_clip")) else { return };
                let follows = matches!(&node.value, Value::Text(text) if text.contains("${"));
                if follows || node.value == Value::Null || tree.value(&to).is_none() {
                    return;
                }
                let ours = tree.value(&to).unwrap();
                assert!(
                    alike(ours, &node.value),
                    "{edition} {word}: {to} is {}, in verl {key}: {}",
                    ours.to_yaml(),
                    node.value.to_yaml()
                );
                compared += 1;
            });
            assert!(compared >= 4, "{edition} {word}: {compared}");
            choices += 1;
        }
    }
    assert!(choices >= 15, "{choices}");
}

/// An edition, a command, and settings of its recipe.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[test]
fn frameworks_bring_their_own_schedules_and_adapters() {
    let cases: &[Case] = &[
        (
            "2026-08",
            &format!("{SFT} optim=automodel"),
            &[("optim.lr", "1e-5"), ("optim.lr_scheduler_type", "cosine"), ("optim.min_lr_ratio", "0.01")],
        ),
        (
            "2026-08",
            &format!("{SFT} optim=torchtitan optim.lr=2e-5"),
            &[("optim.lr", "2e-5"), ("optim.lr_scheduler_type", "linear")],
        ),
        (
            "2026-08",
            &format!("{SFT} optim=megatron engine=megatron model.lora.rank=8"),
            &[("model.lora_rank", "8"), ("model.lora_alpha", "32")],
        ),
        (
            "2026-08",
            &format!("{PPO} model_engine=veomni"),
            &[("actor_rollout_ref.actor.optim.lr_scheduler_type", "cosine"), ("critic.optim.lr_scheduler_type", "cosine")],
        ),
        (
            "2026-08",
            &format!(
                "{PPO} model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.model.lora.rank=16"
            ),
            &[
                ("actor_rollout_ref.model.lora_rank", "16"),
                ("actor_rollout_ref.model.lora_alpha", "32"),
                ("actor_rollout_ref.actor.optim.lr_scheduler_type", "constant"),
            ],
        ),
        (
            "2026-01",
            &format!(
                "{PPO} --config-name=ppo_megatron_trainer actor_rollout_ref.model.lora.rank=16 'actor_rollout_ref.model.lora.target_modules=[linear_qkv,linear_fc2]'"
            ),
            &[
                ("actor_rollout_ref.model.lora_rank", "16"),
                ("actor_rollout_ref.model.lora_alpha", "32"),
                ("actor_rollout_ref.model.target_modules", "- q_proj\n- k_proj\n- v_proj\n- down_proj"),
            ],
        ),
        (
            "2025-06",
            &format!("{PPO} --config-name=ppo_megatron_trainer data.train_batch_size=8"),
            &[("critic.optim.lr_scheduler_type", "linear"), ("critic.optim.lr", "1e-6")],
        ),
        (
            "2025-06",
            &format!("{OLD_SFT} data.train_files=a.parquet"),
            &[("optim.lr_scheduler_type", "cosine"), ("data.max_length", "1024"), ("optim.lr_warmup_steps_ratio", "0.1")],
        ),
        (
            "2026-01",
            &format!("{OLD_SFT} optim.lr_scheduler_type=constant optim.lr_warmup_steps=5"),
            &[("optim.lr_scheduler_type", "cosine"), ("optim.lr_warmup_steps", "-1")],
        ),
        (
            "2026-01",
            &format!("{PPO} actor_rollout_ref.actor.optim.total_training_steps=6"),
            &[("actor_rollout_ref.actor.optim.total_training_steps", "-1")],
        ),
        ("2026-08", &format!("{PPO} reward.reward_manager.name=gdpo"), &[("reward_model.reward_manager", "gdpo")]),
    ];
    for (edition, command, settings) in cases {
        let (found, tree) = converted(edition, command);
        // The single command line equivalent to the recipe means the same.
        let request = Request { config: Some(found.preset.clone()), overrides: found.overrides.clone(), ..Request::default() };
        let line = resolve(found.kind, &request).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(line.problems.is_empty(), "{command}: {}", ConfigError { problems: line.problems });
        leaves("", tree.root(), &mut |key, node| {
            assert!(alike(line.tree.value(key).unwrap(), &node.value), "{command}: {key} as a line is not {:?}", node.value);
        });
        for (key, value) in *settings {
            let ours = yaml(&tree, key);
            let same = ours == *value || ours.parse::<f64>().is_ok_and(|ours| value.parse() == Ok(ours));
            assert!(same, "{edition} {command}: {key} is {ours}, not {value}");
        }
    }
    // Dropped settings are named, with the reason.
    let (found, _) = converted("2026-01", &format!("{OLD_SFT} optim.lr_scheduler_type=constant"));
    assert!(
        found.ignored.iter().any(|one| one.key == "optim.lr_scheduler_type" && one.reason.contains("optim.lr_scheduler ")),
        "{:?}",
        found.ignored
    );
    let (found, _) = converted("2026-08", &format!("{PPO} critic.optim.total_training_steps=6"));
    assert!(found.ignored.iter().any(|one| one.reason.contains("the length of the run")), "{:?}", found.ignored);
    let (found, _) = converted("2026-08", &format!("{SFT} optim=automodel"));
    assert!(found.ignored.iter().any(|one| one.key == "optim.init_lr_ratio" && one.value == "0.1"), "{:?}", found.ignored);
    // A choice of other defaults is refused if it is not supported.
    let problems = |config: &str| {
        let overrides = vec!["model_engine=veomni".to_string()];
        resolve(Kind::Rl, &Request { config: Some(config.into()), overrides, ..Request::default() }).unwrap().problems
    };
    assert!(problems("verl/2026-08/ppo_trainer")[0].message.contains("other defaults (verl's"));
    assert!(convert("2026-08", &format!("{SFT} optim=nope")).unwrap_err().to_string().contains("optim/nope"));
}

/// `+` adds what verl's own file of the edition lacks, and is refused where verl refuses it.
#[test]
fn plus_is_needed_and_refused_as_in_verl() {
    let overlong = "+reward_model.reward_kwargs.overlong_buffer_cfg.enable=True";
    let cases = [
        ("verl/2026-01/ppo_trainer", overlong, true),
        ("verl/2026-08/ppo_trainer", overlong, true),
        ("verl/2025-06/ppo_trainer", "+data.seed=3", true),
        ("verl/2026-01/ppo_trainer", "+data.seed=3", true),
        ("verl/2026-08/ppo_trainer", "+data.gen_batch_size=8", true),
        ("verl/2026-01/ppo_trainer", "+data.train_batch_size=8", false),
        ("verl/2026-08/ppo_trainer", "+algorithm.filter_groups.enable=true", false),
        ("ppo_trainer", overlong, true),
        ("ppo_trainer", "+trainer.seed=3", true),
        ("ppo_trainer", "+trainer.total_epochs=3", false),
    ];
    for (config, word, accepted) in cases {
        let request = Request { config: Some(config.into()), overrides: vec![word.into()], ..Request::default() };
        let problems = resolve(Kind::Rl, &request).unwrap().problems;
        assert_eq!(problems.is_empty(), accepted, "{config} {word}: {}", ConfigError { problems });
    }
}

/// Keys that the documentation calls ignored are accepted as overrides of a run and of `from-verl`.
#[test]
fn ignored_keys_are_accepted_as_overrides() {
    let wild = include_str!("../../data/verl-wild-keys.txt");
    for (kind, command, config) in [(Kind::Rl, PPO, "ppo_trainer"), (Kind::Sft, SFT, "sft_trainer_engine")] {
        let tree = built_in(kind);
        let of_kind = editions::keys().filter(|key| Kind::of_verl_file(key.config) == kind).map(|key| key.key);
        let mut keys: Vec<&str> = of_kind.chain(wild.lines()).collect();
        keys.extend(kind.rows().map(|(pattern, _)| *pattern).filter(|pattern| !pattern.contains('*')));
        keys.retain(|key| {
            let found = row(kind, key, tree.root());
            found.is_some_and(|row| !row.is_section && matches!(row.treatment, KeyTreatment::Ignored(_)))
                && *key != "model_engine"
        });
        keys.sort();
        keys.dedup();
        assert!(keys.len() > 100, "{}", keys.len());
        let is_section = |key: &&&str| editions::keys().any(|other| other.key.starts_with(&format!("{key}.")));
        let words: Vec<String> = keys.iter().filter(|key| !is_section(key)).map(|key| format!("{key}=17")).collect();
        let found = resolve_file(kind, "", &words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert!(found.problems.is_empty(), "{}", ConfigError { problems: found.problems });
        convert("2026-08", &format!("{command} {}", words.join(" "))).unwrap_or_else(|error| panic!("{config}: {error}"));
    }
}

/// A null means the same in a file and as an override: unset if verl means that, and null otherwise.
#[test]
fn a_null_is_the_same_in_a_file_and_as_an_override() {
    for kind in Kind::all() {
        let tree = built_in(kind);
        let is_unset = |key: &str| NULL_IS_UNSET.iter().any(|pattern| fits_key(pattern, key));
        let verls_null = |key: &str| editions::keys().any(|one| one.key == key && one.defaults.contains(&Some("null")));
        let mut nulls = Node::new(Value::Map(Default::default()), tree.root().origin.clone());
        let mut keys = vec![];
        leaves("", tree.root(), &mut |key, default| {
            if row(kind, key, tree.root()).is_none() && (is_unset(key) || verls_null(key)) {
                nulls.put(key, Node { value: Value::Null, ..default.clone() });
                keys.push((key.to_string(), default.value == Value::Null));
            }
        });
        let words: Vec<String> = keys.iter().map(|(key, _)| format!("{key}=null")).collect();
        let file = if keys.is_empty() { String::new() } else { nulls.value.to_yaml() };
        let in_file = resolve_file(kind, &file, &[]).unwrap().tree;
        let overridden = resolve_file(kind, "", &words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap().tree;
        for (key, null_by_default) in &keys {
            let (from_file, from_override) = (in_file.value(key).unwrap(), overridden.value(key).unwrap());
            assert_eq!(from_file, from_override, "{key}");
            assert_eq!(*from_file == Value::Null, !is_unset(key) || *null_by_default, "{key}: {from_file:?}");
        }
    }
    let scale = |file: &str, overrides: &[&str]| {
        resolve_file(Kind::Rl, file, overrides).unwrap().tree.value("critic.loss_scale_factor").unwrap().clone()
    };
    let actors = "actor_rollout_ref.actor.loss_scale_factor=4";
    assert_eq!(scale("critic: {loss_scale_factor: null}", &[actors]), Value::Null);
    assert_eq!(scale("", &[actors, "critic.loss_scale_factor=null"]), Value::Null);
}

/// Settings of frameworks that would change results are refused; the others are ignored, each with its own reason.
#[test]
fn what_frameworks_would_compute_otherwise_is_refused() {
    let transformer = "+actor_rollout_ref.actor.megatron.override_transformer_config";
    for word in [
        format!("{transformer}.attention_dropout=0.1"),
        format!("{transformer}.hidden_dropout=0.1"),
        format!("{transformer}.fp8=hybrid"),
        format!("{transformer}.num_layers=2"),
    ] {
        let problems = resolve_file(Kind::Rl, "", &[&word]).unwrap().problems;
        assert!(problems.iter().any(|one| one.message.contains("cannot be set")), "{word}");
    }
    for (word, part) in [
        (format!("{transformer}.attention_dropout=0.0"), ""),
        (format!("{transformer}.apply_rope_fusion=True"), "fused operations"),
        ("actor_rollout_ref.actor.fsdp_config.model_dtype=bfloat16".into(), "dtype"),
        ("+actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=bf16".into(), "dtype"),
        ("actor_rollout_ref.actor.fsdp_config.seed=7".into(), "trainer.seed"),
        ("actor_rollout_ref.model.torch_dtype=bfloat16".into(), "dtype"),
    ] {
        let found = resolve_file(Kind::Rl, "", &[&word]).unwrap();
        assert!(found.problems.is_empty(), "{word}: {}", ConfigError { problems: found.problems });
        assert!(found.ignored.iter().any(|one| one.reason.contains(part)) || part.is_empty(), "{word}: {:?}", found.ignored);
    }
    let kept = module_names("model.lora.target_modules", Value::Text("all".into()));
    assert_eq!(kept, Value::Text("all".into()));
}

/// A built-in file means the same in the repository's folder, where there are files with similar names.
#[test]
fn built_in_files_do_not_depend_on_the_folder() {
    assert!(repository().join("config/verl/2026-01/sft_trainer.yaml").exists());
    let engine =
        resolve(Kind::Sft, &Request { config: Some("verl/2026-01/sft_trainer_engine".into()), ..Request::default() }).unwrap();
    assert_eq!(yaml(&engine.tree, "optim.lr").parse(), Ok(1e-3));
}

#[test]
fn the_reward_manager_gdpo_is_taken() {
    let words = ["algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=2", "reward_model.reward_manager=gdpo"];
    let overrides = words.map(String::from).to_vec();
    let loaded = load::<PpoConfig>(&Request { overrides, ..Request::default() }, &burnish::cli::choices(Kind::Rl)).unwrap();
    assert_eq!(loaded.config.reward_model.reward_manager, Some(RewardManager::Gdpo));
}

/// Settings that an edition's workers do not read have no effect in it, and are reported.
#[test]
fn editions_read_their_own_names_of_the_clip() {
    let cases = [
        ("2026-08", "actor_rollout_ref.actor.grad_clip=0.4", "1.0"),
        ("2026-08", "actor_rollout_ref.actor.optim.clip_grad=0.4", "0.4"),
        ("2026-01", "actor_rollout_ref.actor.grad_clip=0.4", "0.4"),
        ("2026-01", "actor_rollout_ref.actor.optim.clip_grad=0.4", "1.0"),
    ];
    for (edition, word, clip) in cases {
        let (found, tree) = converted(edition, &format!("{PPO} {word}"));
        assert_eq!(yaml(&tree, "actor_rollout_ref.actor.grad_clip"), clip, "{edition} {word}");
        let key = word.split('=').next().unwrap();
        assert_eq!(found.ignored.iter().any(|one| one.key == key), clip == "1.0", "{edition} {word}: {:?}", found.ignored);
    }
}

/// If no edition is named, a mistake is reported for an edition that has the groups of the command.
#[test]
fn a_mistake_beside_a_group_is_the_one_that_is_named() {
    let text = format!("{PPO} model_engine=torchtitan actor_rollout_ref.actor.optim.lr_scheduler_type=cosine");
    let source = VerlSource { text: &text, edition: None, program: None, env: ShellEnv::for_text("command") };
    let [one] = from_verl::convert(&source).unwrap().blocked.try_into().unwrap();
    assert_eq!(one.key, "actor_rollout_ref.actor.optim.lr_scheduler_type", "{}", one.reason);
}

/// The sides on which a tool's result is cut changed their names; a file has the meaning of its edition.
#[test]
fn the_side_that_goes_is_that_of_the_edition() {
    let key = "actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side";
    for (config, written, means) in [
        ("verl/2026-01/ppo_trainer", "left", "right"),
        ("verl/2026-01/ppo_trainer", "right", "left"),
        ("verl/2026-01/ppo_trainer", "middle", "middle"),
        ("verl/2026-08/ppo_trainer", "left", "left"),
        ("ppo_trainer", "right", "right"),
    ] {
        let overrides = vec![format!("++{key}={written}")];
        let found = resolve(Kind::Rl, &Request { config: Some(config.into()), overrides, ..Request::default() }).unwrap();
        assert_eq!(found.tree.value(key).unwrap().to_yaml(), means, "{config} {written}");
        assert_eq!(found.ignored.iter().any(|one| one.key == key), written != means, "{config} {written}");
    }
    let (_, tree) = converted("2026-01", &format!("{PPO} {key}=left"));
    assert_eq!(yaml(&tree, key), "right");
}

/// verl's keys of conversations are settings: in every edition, under every name, with the one loop that reads them.
#[test]
fn conversations_of_verl_are_settings() {
    let rollout = "actor_rollout_ref.rollout";
    let load = |words: &[&str]| {
        let overrides = words.iter().map(|word| word.replace("@", rollout)).collect();
        load::<PpoConfig>(&Request { overrides, ..Request::default() }, &burnish::cli::choices(Kind::Rl))
    };
    let tools = "data.tool_config_path=tools.yaml";
    for (words, name, by_enable) in [
        (vec!["@.multi_turn.enable=true", tools], "tool_agent", true),
        (vec!["@.multi_turn.enable=true", "@.multi_turn.interaction_config_path=u.yaml"], "tool_agent", true),
        (vec![tools], "single_turn_agent", false),
        (vec!["@.agent.default_agent_loop=tool_agent", tools], "tool_agent", false),
        (vec!["@.agent.default_agent_loop=own", "@.agent.agent_loop_config_path=l.yaml"], "own", false),
    ] {
        let config = load(&words).unwrap_or_else(|error| panic!("{words:?}: {error}")).config;
        let rollout = &config.actor_rollout_ref.rollout;
        let chosen = rollout.conversations().default_loop();
        assert_eq!((chosen.name, chosen.by_enable), (name, by_enable), "{words:?}");
        assert_eq!(rollout.multi_turn.tool_config_path.is_some(), words.contains(&tools), "{words:?}");
    }
    for (words, part) in [
        (vec!["@.multi_turn.enable=true"], "no tool, user, environment or loop"),
        (vec!["@.agent.default_agent_loop=tool_agent"], "has nothing to call"),
        (vec!["@.agent.default_agent_loop=environment_agent", tools], "agent.environment.path=FILE"),
        (vec!["@.agent.default_agent_loop=own"], "agent_loop_config_path=FILE"),
        (vec!["@.agent.default_agent_loop=tool_agnt", tools], "tool_agent"),
        (vec!["@.agent.functions_path=f.py"], "write actor_rollout_ref.rollout.agent.functions=[NAME,…]"),
        (vec!["@.agent.functions_path=f.py", "@.agent.functions=[a,a]"], "names `a` twice"),
        (vec!["@.agent.environment.name=Game"], "agent.environment.path=FILE"),
        (vec!["@.multi_turn.max_user_turns=-1"], "max_user_turns"),
        (vec!["@.multi_turn.max_parallel_calls=0"], "max_parallel_calls"),
        (vec!["@.multi_turn.tool_response_truncate_side=front"], "tool_response_truncate_side"),
        (vec!["@.agent.call_timeout=0"], "call_timeout"),
        (vec!["+@.agent.custom_async_server.path=s.py"], "cannot be set"),
        (vec!["+@.multi_turn.completion_callback=a.B"], "cannot be set"),
        (vec!["@.multi_turn.format=hermse", tools], "hermes"),
    ] {
        let error = load(&words).expect_err(&format!("{words:?}")).to_string();
        assert!(error.contains(part), "{words:?}: {error}");
    }
    let found = load(&["+@.multi_turn.max_turns=3", "@.multi_turn.format=qwen", "@.multi_turn.max_user_turns=0", tools]).unwrap();
    let multi_turn = &found.config.actor_rollout_ref.rollout.multi_turn;
    assert_eq!((multi_turn.assistant_turns(), multi_turn.user_turns(), multi_turn.format.as_str()), (Some(3), None, "hermes"));
    let dead =
        ["+@.multi_turn.use_inference_chat_template=true", "+@.multi_turn.num_repeat_rollouts=2", "+@.agent.num_workers=2"];
    let named: Vec<String> = load(&dead).unwrap().ignored.into_iter().map(|one| one.key).collect();
    assert_eq!(named.len(), 3, "{named:?}");
}
