//! Keys, files and command lines written for verl.
//!
//! `scripts/bless` rewrites config/verl/.

use burnish::config::compat::table::VALUES;
use burnish::config::compat::{KeyRow, KeyTreatment, Kind, alike, editions, row};
use burnish::config::{ConfigError, Request, ResolvedConfig, Tree, Value, defaults, resolve};
use burnish::convert::from_verl::{self, VerlConversion, VerlSource};
use burnish::convert::shell::{Launch, ShellEnv};
use std::collections::BTreeSet;
use std::path::PathBuf;

mod conversion;
mod names;
mod presets;
mod scripts;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn built_in(kind: Kind) -> Tree {
    defaults(kind.default_file()).unwrap()
}

/// True for a key inside a setting that takes any keys, such as `override_config`.
fn is_in_open_mapping(tree: &Tree, key: &str) -> bool {
    key.match_indices('.').any(|(at, _)| matches!(tree.value(&key[..at]), Some(Value::Map(map)) if map.is_empty()))
}

#[test]
fn every_key_of_three_editions_is_a_setting_renamed_ignored_or_refused() {
    let mut unknown = vec![];
    for kind in Kind::all() {
        let tree = built_in(kind);
        for key in editions::keys().filter(|key| Kind::of_verl_file(key.config) == kind) {
            match row(kind, key.key, tree.root()) {
                None if tree.value(key.key).is_none() && !is_in_open_mapping(&tree, key.key) => {
                    unknown.push(format!("{} {}: no row", key.config, key.key))
                }
                Some(found) => {
                    let lost = found.target.filter(|to| row(kind, to, tree.root()).is_none() && tree.value(to).is_none());
                    unknown.extend(lost.map(|to| format!("{} {}: there is no {to}", key.config, key.key)));
                }
                None => {}
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn every_row_is_about_some_key() {
    // These keys occur in real command lines, and in releases between the editions.
    let wild = include_str!("../../data/verl-wild-keys.txt");
    let (mut rows, mut used) = (BTreeSet::new(), BTreeSet::new());
    for kind in Kind::all() {
        let tree = built_in(kind);
        // The generation server reads the keys of reinforcement learning.
        let reads = |key: &editions::VerlKey| {
            Kind::of_verl_file(key.config) == kind || kind == Kind::Generation && key.config.starts_with("ppo_")
        };
        for key in editions::keys().filter(reads).map(|key| key.key).chain(wild.lines()) {
            let found = row(kind, key, tree.root());
            let target = found.as_ref().and_then(|found| row(kind, found.target.as_ref()?, tree.root()));
            used.extend(found.into_iter().chain(target).map(|row| row.pattern));
        }
        rows.extend(kind.rows().map(|(pattern, _)| pattern.to_string()));
    }
    assert_eq!(rows.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new());
}

fn convert(command: &str) -> Result<VerlConversion, ConfigError> {
    from_verl::convert(&VerlSource { text: command, edition: None, program: None, env: ShellEnv::for_text("command") })
}

/// Loads a recipe up to the type check.
fn resolved(converted: &VerlConversion) -> Tree {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.yaml");
    std::fs::write(&path, &converted.recipe).unwrap();
    let request = Request { config: Some(path.display().to_string()), ..Request::default() };
    resolve(converted.kind, &request).unwrap_or_else(|error| panic!("{error}\n{}", converted.recipe)).tree
}

fn golden_folder() -> PathBuf {
    std::env::var_os("BURNISH_GOLDENS").map_or_else(|| repository().join("tests/golden"), PathBuf::from)
}

fn golden_lines(file: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(golden_folder().join("config").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn from_json(value: &serde_json::Value) -> Value {
    editions::parse(&value.to_string()).unwrap().value
}

/// Replaces values that this program lacks by similar ones.
fn available(key: &str, value: Value) -> Value {
    let Some((_, absent, instead, _)) = VALUES.iter().find(|(of, ..)| *of == key) else { return value };
    let Value::List(mut items) = value else { return value };
    let before = items.len();
    items.retain(|item| !matches!(&item.value, Value::Text(name) if absent.contains(&name.as_str())));
    if items.len() < before {
        items.push(editions::parse(instead).unwrap());
    }
    Value::List(items)
}

/// Every real command line converts, and its recipe gives every setting the value that Hydra gave it for verl.
#[test]
fn golden_command_lines_convert_and_resolve() {
    let (mut commands, mut values, mut elsewhere) = (0, 0, 0);
    for file in ["cmdlines.jsonl", "cmdlines_extra.jsonl", "cmdlines_sft_eval_gen.jsonl"] {
        for line in golden_lines(file) {
            let command = line["command"].as_str().unwrap();
            let converted = convert(command).unwrap_or_else(|error| panic!("{command}\n{error}"));
            let (written, tree) = (built_in(converted.kind), resolved(&converted));
            for (key, expected) in line["resolved_diff_vs_default"].as_object().unwrap() {
                let mut expected = available(key, from_json(expected));
                let ours = match row(converted.kind, key, written.root()) {
                    Some(KeyRow { treatment: KeyTreatment::Sets(to, value), .. }) => {
                        expected = editions::parse(value).unwrap().value;
                        Some(to.to_string())
                    }
                    Some(KeyRow { treatment: KeyTreatment::SetsFrom(to, from), .. }) => {
                        let named = line["resolved_diff_vs_default"].get(from).map_or("messages", |name| name.as_str().unwrap());
                        expected = Value::Text(named.into());
                        Some(to.to_string())
                    }
                    Some(found) => found.target.filter(|to| row(converted.kind, to, written.root()).is_none()),
                    // Keys of the generation server that generation does not read.
                    None if written.value(key).is_none() && converted.preset.ends_with("generation_server") => None,
                    None => Some(key.clone()),
                };
                let Some(ours) = ours else {
                    elsewhere += 1;
                    continue;
                };
                let Some(value) = tree.value(&ours) else { panic!("{ours} is missing\n{}", converted.recipe) };
                let same = alike(value, &expected);
                assert!(same, "{command}\n{key}: {} is not {expected:?}\n{}", value.to_yaml(), converted.recipe);
                values += 1;
            }
            commands += 1;
        }
    }
    println!("{commands} command lines, {values} settings equal, {elsewhere} keys that are not settings");
    assert!(commands >= 31 && values > 300, "{commands} commands, {values} values");
}

#[test]
fn golden_command_lines_that_verl_refuses_are_refused() {
    for line in golden_lines("cmdlines_negative.jsonl") {
        let command = line["command"].as_str().unwrap();
        // Hydra names the key or the whole word, and so do we.
        let word = line["error"]
            .as_str()
            .unwrap()
            .split(['\'', ' '])
            .rev()
            .find(|word| word.trim_end_matches('.').contains('.'))
            .unwrap();
        let key = word.split(['=', '[']).next().unwrap().trim_end_matches('.');
        // A word that is not an override is an error; a key that verl refuses is commented out, with the reason. A `+` before a
        // key that an earlier release did not have is left out, and a note says so.
        let message = match convert(command) {
            Err(error) => error.to_string(),
            Ok(converted) => {
                let is_added = converted.notes.iter().any(|note| note.contains(key) && note.contains("the `+` is left out"));
                assert!(is_added || converted.recipe.contains("#   1. "), "{command}\n{}", converted.recipe);
                let blocked = converted.blocked.iter().map(|one| format!("{}: {}\n", one.key, one.reason));
                blocked.chain(converted.notes.iter().cloned()).collect()
            }
        };
        assert!(message.contains(key), "{command}: no {key} in\n{message}");
    }
}

/// Without verl's folder, its defaults are built in. Renamed keys are reported, also where `${…}` refers to them.
#[test]
fn a_file_written_for_verl_loads_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my_trainer.yaml");
    let text = "hydra: {searchpath: [file://verl/trainer/config]}\ndefaults: [ppo_trainer, _self_]\n\
                data: {train_batch_size: 128}\nactor_rollout_ref:\n  hybrid_engine: true\n  actor:\n    ppo_micro_batch_size: 8\n    \
                fsdp_config: {param_offload: true}\n    strategy: fsdp\ncritic: {ppo_epochs: '${actor_rollout_ref.actor.ppo_micro_batch_size}'}\n\
                reward: {reward_manager: {name: naive}}\nreward_model: {enable: null}\n";
    std::fs::write(&path, text).unwrap();
    let overrides = ["trainer.remove_previous_ckpt_in_save=true", "trainer.nnodes=2", "actor_rollout_ref.rollout.name=vllm"];
    let request = Request {
        config: Some(path.display().to_string()),
        overrides: overrides.map(str::to_string).to_vec(),
        ..Request::default()
    };
    let resolved = resolve(Kind::Rl, &request).unwrap();
    assert!(resolved.problems.is_empty(), "{}", ConfigError { problems: resolved.problems });
    let value = |key: &str| resolved.tree.value(key).unwrap().to_yaml();
    assert_eq!(
        (value("data.train_batch_size"), value("actor_rollout_ref.actor.ppo_mini_batch_size")),
        ("128".into(), "256".into())
    );
    assert_eq!(value("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"), "8");
    assert_eq!((value("critic.ppo_epochs"), value("trainer.max_actor_ckpt_to_keep")), ("8".into(), "1".into()));
    let renamed: Vec<&str> = resolved.renamed.iter().map(|one| one.from.as_str()).collect();
    assert_eq!(renamed, ["actor_rollout_ref.actor.ppo_micro_batch_size", "trainer.remove_previous_ckpt_in_save"]);
    let ignored: Vec<&str> = resolved.ignored.iter().map(|one| one.key.as_str()).collect();
    let expected = ["actor_rollout_ref.actor.fsdp_config.param_offload", "actor_rollout_ref.rollout.name"];
    assert_eq!(ignored[..2], expected, "{ignored:?}");
    assert_eq!(value("trainer.logger"), "- console\n- wandb");
    assert!(ignored.contains(&"trainer.nnodes"), "{ignored:?}");
}

/// Loads a file with this text (`None` for the defaults) and overrides.
fn resolve_file(kind: Kind, file: &str, overrides: &[&str]) -> Result<ResolvedConfig, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.yaml");
    std::fs::write(&path, file).unwrap();
    let config = (!file.is_empty()).then(|| path.display().to_string());
    let overrides = overrides.iter().map(|text| text.to_string()).collect();
    resolve(kind, &Request { config, overrides, ..Request::default() })
}

/// In every form of a key of verl, the corresponding setting gets its value.
#[test]
fn old_names_work_in_files_mappings_and_references() {
    let (micro, grad) = ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "actor_rollout_ref.actor.grad_clip");
    let old_micro = "actor_rollout_ref: {actor: {ppo_micro_batch_size: 4}}";
    let cases: &[(Kind, &str, &[&str], &str, &str)] = &[
        (Kind::Rl, "", &["actor_rollout_ref.actor.optim={lr: 1e-5, clip_grad: 0.5}"], grad, "0.5"),
        (Kind::Rl, "", &["++actor_rollout_ref.actor={ppo_micro_batch_size: 4}"], micro, "4"),
        (Kind::Rl, "", &["++trainer={remove_previous_ckpt_in_save: true}"], "trainer.max_actor_ckpt_to_keep", "1"),
        (Kind::Rl, old_micro, &[], micro, "4"),
        (Kind::Rl, old_micro, &["~actor_rollout_ref.actor.ppo_micro_batch_size"], micro, "8"),
        (Kind::Rl, old_micro, &["actor_rollout_ref.actor.ppo_micro_batch_size=null"], micro, "8"),
        (Kind::Rl, old_micro, &["actor_rollout_ref.actor.ppo_micro_batch_size=2", &format!("{micro}=16")], micro, "16"),
        (Kind::Rl, "actor_rollout_ref: {actor: {optim: {lr: 0.25, clip_grad: '${.lr}'}}}", &[], grad, "0.25"),
        (
            Kind::Rl,
            "trainer: {remove_previous_ckpt_in_save: true, max_actor_ckpt_to_keep: 5}",
            &[],
            "trainer.max_actor_ckpt_to_keep",
            "1",
        ),
        (
            Kind::Rl,
            "",
            &["trainer.remove_previous_ckpt_in_save=true", "trainer.max_actor_ckpt_to_keep=5"],
            "trainer.max_actor_ckpt_to_keep",
            "1",
        ),
        (
            Kind::Rl,
            "trainer: {remove_previous_ckpt_in_save: true}",
            &["trainer.remove_previous_ckpt_in_save=false", "++trainer.max_actor_ckpt_to_keep=5"],
            "trainer.max_actor_ckpt_to_keep",
            "5",
        ),
        (Kind::Rl, "", &["trainer.experiment_name='x${trainer.nnodes}'"], "trainer.experiment_name", "x1"),
        (Kind::Rl, "", &["trainer.nnodes=2", "trainer.experiment_name='x${trainer.nnodes}'"], "trainer.experiment_name", "x2"),
        (
            Kind::Rl,
            "",
            &["critic.enable=false", "reward_model.enable=null", "algorithm.filter_groups.enable=false"],
            micro,
            "128",
        ),
        (Kind::Sft, "", &["data.multiturn={enable: true}"], "data.messages_key", "messages"),
        (Kind::Sft, "data: {multiturn: {enable: true, messages_key: msgs}}", &[], "data.messages_key", "msgs"),
        (Kind::Sft, "data: {multiturn: {enable: false, messages_key: messages}}", &[], "data.messages_key", "null"),
        (Kind::Sft, "data: {multiturn: {enable: false, messages_key: msgs}}", &[], "data.messages_key", "null"),
        (Kind::Sft, "", &["data.multiturn.messages_key=msgs", "data.multiturn.enable=false"], "data.messages_key", "null"),
        (Kind::Sft, "", &["data.multiturn.messages_key=msgs", "data.multiturn.enable=true"], "data.messages_key", "msgs"),
    ];
    for (kind, file, overrides, key, expected) in cases {
        let resolved = resolve_file(*kind, file, overrides).unwrap_or_else(|error| panic!("{file} {overrides:?}: {error}"));
        assert!(resolved.problems.is_empty(), "{file} {overrides:?}: {}", ConfigError { problems: resolved.problems });
        assert_eq!(resolved.tree.value(key).unwrap().to_yaml(), *expected, "{file} {overrides:?}");
    }
}

#[test]
fn what_would_change_a_run_is_refused_and_misspelt_sections_are_unknown() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "",
            &["+actor_rollout_ref.rollout.agent.agent_loop_manager_class=a.B", "actor_rollout_ref.hybrid_engine=false"],
            &["2 problems", "`actor_rollout_ref.rollout.agent.agent_loop_manager_class` cannot be set", "one set of weights"],
        ),
        ("", &["reward.reward_manager={module: {path: f.py}}"], &["`reward.reward_manager.module.path` cannot be set"]),
        ("", &["+reward_manager={source: importlib}"], &["`reward_manager.source` cannot be set"]),
        ("reward: {reward_manager: dapo}", &[], &["`reward.reward_manager` must be a mapping, not dapo", "run.yaml:1:26"]),
        (
            "",
            &["trainer.remove_previous_ckpt_in_save=yes"],
            &["`trainer.remove_previous_ckpt_in_save` must be true or false, not 'yes'"],
        ),
        ("", &["actor_rollout_ref.modle.trust_remote_code=true"], &["no such key `actor_rollout_ref.modle.trust_remote_code`"]),
        ("", &["actor_rollout_ref.actr.fsdp_config.param_offload=True"], &["no such key"]),
        ("", &["critic.optim.lrr=1"], &["no such key `critic.optim.lrr`", "`critic.optim.lr`?"]),
        ("", &["data.image_key=pictures"], &["`data.image_key` cannot be set: prompts are text"]),
        ("", &["data.image_kye=x"], &["no such key `data.image_kye`"]),
        ("", &["~actor_rollout_ref.rollout.val_kwargs"], &["a run needs it", "set its keys instead"]),
        (
            "actor_rollout_ref:\n  actor: {ppo_micro_batch_size: 8, ppo_micro_batch_size_per_gpu: 4}",
            &[],
            &["the same setting", "two values", "run.yaml:2:33"],
        ),
    ];
    for (file, overrides, parts) in cases {
        let message = match resolve_file(Kind::Rl, file, overrides) {
            Ok(resolved) => ConfigError { problems: resolved.problems }.to_string(),
            Err(error) => error.to_string(),
        };
        for part in *parts {
            assert!(message.contains(part), "{file} {overrides:?}: no {part:?} in\n{message}");
        }
    }
}

/// The recipe has the meaning of the command: later words win under any name, and refused settings stay in the recipe.
#[test]
fn recipes_hold_what_the_command_means() {
    let two = "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
               actor_rollout_ref.actor.ppo_micro_batch_size=4 trainer.nnodes=2 'trainer.experiment_name=${trainer.nnodes}x'";
    let converted = convert(two).unwrap();
    let tree = resolved(&converted);
    assert_eq!(tree.value("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu").unwrap().to_yaml(), "4");
    assert_eq!(tree.value("trainer.experiment_name").unwrap().to_yaml(), "2x");
    let converted =
        convert("python3 -m verl.trainer.main_ppo actor_rollout_ref.model.external_lib=x critic=megatron_critic").unwrap();
    let blocked: Vec<&str> = converted.blocked.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(blocked, ["actor_rollout_ref.model.external_lib"]);
    assert!(converted.recipe.contains("\n#   1. actor_rollout_ref.model.external_lib=x: "), "{}", converted.recipe);
    let further = convert(&format!("cd x && {two}\n\n{two} trainer.nnodes=3")).unwrap().further;
    assert_eq!(further, [Launch { number: 2, line: 3, differs: vec!["trainer.nnodes=3".into()] }]);
    // verl overwrites the length of a schedule.
    let schedule = "actor_rollout_ref.actor.optim.total_training_steps";
    let overwritten = convert(&format!("python3 -m verl.trainer.main_ppo {schedule}=7 trainer.total_training_steps=9")).unwrap();
    assert!(overwritten.ignored.iter().any(|one| one.key == schedule && one.value == "7"), "{}", overwritten.recipe);
    let tree = resolved(&overwritten);
    assert_eq!([schedule, "trainer.total_training_steps"].map(|key| tree.value(key).unwrap().to_yaml()), ["-1", "9"]);
    let request = |recipe: &str| resolve_file(Kind::Rl, recipe, &[]).unwrap().problems;
    assert!(request(&converted.recipe).is_empty(), "{}", converted.recipe);
    assert!(
        convert("python3 -m verl.trainer.main_ppo critic=nope")
            .unwrap_err()
            .to_string()
            .contains("there is no configuration `critic/nope`")
    );
}
