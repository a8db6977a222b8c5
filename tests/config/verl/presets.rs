//! The built-in defaults of verl in three editions, against Hydra's composition of verl's own files.

use super::{built_in, golden_folder, repository};
use burnish::cli::choices;
use burnish::config::compat::{
    KeyTreatment, Kind, NULL_IS_UNSET, alike, compose_edition, editions, files, fits_key, leaves, module_names, row,
};
use burnish::config::{Node, PpoConfig, Request, ResolvedConfig, Tree, Value, load, resolve};
use burnish::hydra::interpolation;
use std::collections::{BTreeMap, BTreeSet};

/// The built-in files with verl's defaults: the name, the file of verl that it replaces, and the kind of command that reads it.
const PRESETS: [(&str, &str, Kind); 7] = [
    ("ppo_trainer", "ppo_trainer", Kind::Rl),
    ("ppo_megatron_trainer", "ppo_megatron_trainer", Kind::Rl),
    ("sft_trainer", "sft_trainer", Kind::Sft),
    ("sft_trainer_engine", "sft_trainer_engine", Kind::Sft),
    ("evaluation", "evaluation", Kind::Evaluation),
    ("generation", "generation", Kind::Generation),
    ("generation_server", "ppo_trainer", Kind::Generation),
];

/// Settings that deviate from verl's default on purpose: the key, and the reason.
const DEVIATIONS: &[(&str, &str)] = &[
    ("actor_rollout_ref.actor.clip_ratio_low", "a clip range on both sides would hide clip_ratio, as it does in verl"),
    ("actor_rollout_ref.actor.clip_ratio_high", "the same"),
];

/// The defaults in verl's code for keys that the files of an edition lack: edition (all if empty), file, key, value, and its
/// place in the code.
const FALLBACKS: &[(&str, &str, &str, &str, &str)] = &[
    ("2025-06", "ppo_trainer", "data.seed", "1", "trainer/main_ppo.py: data_config.get(\"seed\", 1)"),
    ("2025-06", "ppo_megatron_trainer", "data.seed", "1", "the same"),
    ("2025-06", "sft_trainer", "trainer.device", "cuda", "trainer/fsdp_sft_trainer.py: get_device_name()"),
    ("", "sft_trainer", "model.init", "pretrained", "trainer/fsdp_sft_trainer.py: from_pretrained"),
    ("", "sft_trainer_engine", "model.init", "pretrained", "workers/engine: from_pretrained"),
    ("", "ppo_trainer", "trainer.save_best", "false", "verl keeps no best checkpoint"),
    ("", "ppo_megatron_trainer", "trainer.save_best", "false", "the same"),
    ("", "sft_trainer", "trainer.save_best", "false", "the same"),
    ("", "sft_trainer_engine", "trainer.save_best", "false", "the same"),
];

/// Settings that some edition of verl lacks, with their value in that edition's preset; no value comes from the arithmetic task.
/// Values that are null, false or empty need no line. The first word of a line is the key, the rest is the value.
const OWN: &[&str] = &[
    // The defaults of PyTorch's AdamW and of verl's schedules.
    "**.betas [0.9, 0.999]",
    "**.eps 1e-8",
    "**.optim.optimizer AdamW",
    "**.lr_warmup_steps -1",
    "**.min_lr_ratio 0.0",
    "**.num_cycles 0.5",
    "**.lr_warmup_init 0.0",
    "**.lr_wsd_decay_style cosine",
    "**.min_lr 0.0",
    "**.optim.power 1.0",
    "**.optim.stable_ratio 0.9",
    "**.optim.zero_indexed_step true",
    "**.total_training_steps -1",
    // The values of later editions; 0.4.1 makes no correction with these values.
    "actor_rollout_ref.rollout.logprobs_mode processed_logprobs",
    // Algorithm options that are off, or other names for verl's behaviour.
    "actor_rollout_ref.actor.policy_loss.a2po_beta 0.001",
    "actor_rollout_ref.actor.policy_loss.adv_tau 1.0",
    "actor_rollout_ref.actor.policy_loss.anchor old",
    "actor_rollout_ref.actor.policy_loss.dpo_beta 0.1",
    "actor_rollout_ref.actor.policy_loss.dpo_loss_type sigmoid",
    "actor_rollout_ref.actor.policy_loss.ipo_threshold 0.1",
    "actor_rollout_ref.actor.policy_loss.kl_tau 0.001",
    "actor_rollout_ref.actor.policy_loss.top_entropy_quantile 1.0",
    "actor_rollout_ref.actor.policy_loss.vespo_k_neg 3.0",
    "actor_rollout_ref.actor.policy_loss.vespo_k_pos 2.0",
    "actor_rollout_ref.actor.policy_loss.vespo_lambda_neg 2.0",
    "actor_rollout_ref.actor.policy_loss.vespo_lambda_pos 3.0",
    "actor_rollout_ref.actor.tau_neg 1.05",
    "actor_rollout_ref.actor.tau_pos 1.0",
    "actor_rollout_ref.ref.ref_model_mixup_alpha 0.6",
    "actor_rollout_ref.ref.ref_model_sync_steps 512",
    "actor_rollout_ref.actor.entropy_coef_delta 0.005",
    "actor_rollout_ref.actor.entropy_coef_max 1.0",
    "actor_rollout_ref.actor.entropy_coef_min 0.0",
    "actor_rollout_ref.actor.entropy_target 0.2",
    "algorithm.baselined_clip_range [-10.0, 10.0]",
    "algorithm.filter_groups.tolerance 0.0",
    "algorithm.rae_decay 0.95",
    "algorithm.a2po.beta1 0.5",
    "algorithm.a2po.filter_all_incorrect true",
    "algorithm.a2po.num_value_samples 8",
    "algorithm.filter_groups.max_num_gen_batches 0",
    "algorithm.echo.alpha 0.1",
    "algorithm.echo.roles [tool]",
    // On-policy distillation is off; editions before 2026-08 do not have it, and only burnish has the weight of the generalised
    // divergence.
    "distillation.distillation_loss.beta 0.5",
    "distillation.distillation_loss.iw_opd_epsilon 1e-8",
    "distillation.distillation_loss.iw_opd_gamma 0.5",
    "distillation.distillation_loss.loss_add_tail true",
    "distillation.distillation_loss.loss_support auto",
    "distillation.distillation_loss.loss_top_k 0",
    "distillation.distillation_loss.num_loss_tokens_to_skip 0",
    "distillation.teacher_context user",
    "distillation.teacher_sync_steps 1",
    "distillation.teacher_update_rate 0.05",
    "distillation.teacher_prompt_template*",
    "distillation.sdpo.*",
    "distillation.distillation_loss.clip_ratio* 0.2",
    "distillation.distillation_loss.distillation_loss_coef 1.0",
    "distillation.distillation_loss.loss_mode k3",
    "distillation.distillation_loss.topk 32",
    "distillation.distillation_loss.use_task_rewards true",
    "algorithm.label_smoothing 0.0",
    "algorithm.loss_type nll",
    "data.assistant_mask auto",
    "data.chat_template_kwargs_key chat_template_kwargs",
    "data.loss_mask auto",
    "data.loss_roles",
    "trainer.early_stopping_threshold 0.0",
    "trainer.eval_delay 0",
    "algorithm.normalize_advantages none",
    "algorithm.post_processing.name post_process",
    "algorithm.rollout_correction.loss_type ppo_clip",
    "algorithm.rollout_correction.rollout_is_threshold 2.0",
    "algorithm.scale_rewards group",
    "reward_model.step_*",
    "reward_model.reward_kwargs.overlong_buffer_cfg.len 0",
    "reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor 1.0",
    // Neutral values of sampling options.
    "**.min_p 0.0",
    "**.min_tokens 0",
    "**.repetition_penalty 1.0",
    "**.presence_penalty 0.0",
    "**.frequency_penalty 0.0",
    "actor_rollout_ref.rollout.name native",
    // Conversations: the values of later editions, and settings that verl lacks.
    "actor_rollout_ref.rollout.multi_turn.max_parallel_calls 1",
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length 256",
    "actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side middle",
    "actor_rollout_ref.rollout.agent.default_agent_loop single_turn_agent",
    "actor_rollout_ref.rollout.agent.call_timeout 60",
    "actor_rollout_ref.rollout.agent.memory_limit_mb 8192",
    "data.apply_chat_template false",
    "data.on_malformed_row error",
    "actor_rollout_ref.rollout.agent.read_agent_name true",
    "actor_rollout_ref.rollout.agent.start_method auto",
    "actor_rollout_ref.rollout.agent.server.name run",
    "actor_rollout_ref.rollout.agent.ignore_calls_in_thinking true",
    "actor_rollout_ref.rollout.agent.neutralise_control_tokens true",
    "rollout.multi_turn.format hermes",
    "rollout.multi_turn.max_parallel_calls 1",
    "rollout.multi_turn.max_tool_response_length 256",
    "rollout.multi_turn.tool_response_truncate_side middle",
    "rollout.agent.default_agent_loop single_turn_agent",
    "rollout.agent.call_timeout 60",
    "rollout.agent.memory_limit_mb 8192",
    "rollout.agent.read_agent_name true",
    "rollout.agent.start_method auto",
    "rollout.agent.server.name run",
    "rollout.agent.ignore_calls_in_thinking true",
    "rollout.agent.neutralise_control_tokens true",
    "algorithm.turn_rewards ignore",
    // Models.
    "**.dtype auto",
    "**.init pretrained",
    "**.lora_rank 0",
    "**.lora_alpha 16",
    "**.target_modules all-linear",
    "critic.model.enable_gradient_checkpointing true",
    // Values derived from one of verl's.
    "reward_model.model.input_tokenizer ~/models/deepseek-llm-7b-chat",
    "reward_model.reward_kwargs.max_resp_len 512",
    "reward_model.forward_max_token_len_per_gpu 32768",
    // Settings that change memory and speed but not results.
    "critic.forward_micro_batch_size_per_gpu 8",
    "data.batch_size 128",
    "data.max_token_len_per_gpu 8192",
    "reward_model.micro_batch_size_per_gpu 16",
    // Rows: all rows are used and shuffled, and an overlong row is an error. A conversation has no separate prompt and response.
    "data.shuffle true",
    "data.truncation error",
    "data.train_max_samples -1",
    "data.val_max_samples -1",
    "data.prompt_key prompt",
    "data.response_key response",
    "data.response_dict_keys [answer]",
    // The output path of verl's generation server, which its settings lack.
    "data.output_path outputs/responses.parquet",
    // Processes: a single process waits for no others, and its gradients are one slice.
    "**.nccl_timeout 600",
    "trainer.balance_batch true",
    // The run.
    "checkpoint.*_contents [model, optimizer, extra]",
    "reward.**",
    "trainer.greater_is_better true",
    "trainer.log_completions 5",
    "trainer.metric_names verl",
    "trainer.num_sample_generations 10",
    "trainer.on_alarm warn",
    "trainer.on_nonfinite error",
    "trainer.resume_mode auto",
    "trainer.seed 1",
];

fn is_for(fallback: &(&str, &str, &str, &str, &str), edition: &str, config: &str) -> bool {
    (fallback.0.is_empty() || fallback.0 == edition) && fallback.1 == config
}

/// verl's defaults of one file in one edition with `${…}` resolved, as Hydra did.
fn composed(edition: usize, config: &str) -> BTreeMap<&'static str, Value> {
    let resolved = std::fs::read_to_string(golden_folder().join("verl-defaults/resolved.tsv")).unwrap();
    let resolved: BTreeMap<(&str, &str), &str> = resolved
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[2 + edition] != "-").then_some(((cells[0], cells[1]), cells[2 + edition]))
        })
        .collect();
    let of_file = editions::keys().filter(|key| key.config == config);
    let value = |key: &editions::VerlKey, written: &str| {
        let text = resolved.get(&(config, key.key)).copied().unwrap_or(written);
        editions::parse(text).unwrap_or_else(|| panic!("{config} {}: {text}", key.key)).value
    };
    of_file.filter_map(|key| Some((key.key, value(&key, key.defaults[edition]?)))).collect()
}

/// The command that trains with one of verl's files.
fn framework(config: &str) -> &'static str {
    if config.contains("megatron") { editions::MEGATRON } else { editions::FSDP }
}

/// By the name of the setting: verl's key, and its value.
type Expected = BTreeMap<String, (&'static str, Value)>;

/// Our settings that correspond to verl's keys, at verl's values.
fn expected(edition: usize, config: &str, kind: Kind) -> Expected {
    let written = built_in(kind);
    let is_setting = |key: &str| row(kind, key, written.root()).is_none() && written.value(key).is_some();
    let (mut settings, mut old) = (BTreeMap::new(), vec![]);
    for (key, value) in composed(edition, config) {
        let is_open = matches!(&value, Value::Map(_));
        if editions::unread(editions::EDITIONS[edition], config, framework(config), key).is_some()
            || is_open
            || matches!(&value, Value::Text(text) if text == "???")
        {
            continue;
        }
        match row(kind, key, written.root()) {
            None if is_setting(key) => drop(settings.insert(key.to_string(), (key, value))),
            Some(found) if matches!(found.treatment, KeyTreatment::Renamed(_)) && value != Value::Null => {
                old.push((found.target.unwrap(), key, value))
            }
            _ => {}
        }
    }
    for (to, key, value) in old {
        let value = module_names(key, value);
        if is_setting(&to) && settings.get(&to).is_none_or(|(_, there)| *there == Value::Null) {
            settings.insert(to, (key, value));
        }
    }
    for (_, _, key, value, _) in FALLBACKS.iter().filter(|fallback| is_for(fallback, editions::EDITIONS[edition], config)) {
        if is_setting(key) && !settings.is_empty() {
            settings.insert(key.to_string(), (key, editions::parse(value).unwrap().value));
        }
    }
    // A null is "unset" if verl's null does not exist here.
    settings.retain(|key, (_, value)| *value != Value::Null || NULL_IS_UNSET.iter().all(|pattern| !fits_key(pattern, key)));
    settings.retain(|key, _| DEVIATIONS.iter().all(|(known, _)| known != key));
    settings
}

fn resolve_file(kind: Kind, config: &str) -> ResolvedConfig {
    resolve(kind, &Request { config: Some(config.to_string()), ..Request::default() }).unwrap()
}

/// verl's defaults under our names: only the defaults that differ from ours.
fn preset(edition: usize, config: &str, kind: Kind) -> Option<String> {
    if editions::keys().all(|key| key.config != config || key.defaults[edition].is_none()) {
        return None;
    }
    let written = built_in(kind);
    let (own, _) = interpolation::resolve(written.root());
    let mut differing = Node::new(Value::Map(Default::default()), written.root().origin.clone());
    for (key, (_, value)) in expected(edition, config, kind) {
        // A setting that follows another setting in both systems needs no line.
        let follows = matches!(written.value(&key), Some(Value::Text(text)) if text.contains("${"));
        if !follows && !own.get(&key).is_some_and(|ours| alike(&ours.value, &value)) {
            differing.put(&key, Node::new(value, written.root().origin.clone()));
        }
    }
    let mut text = format!(
        "# @package _global_\n# verl's defaults of {} for {config}, where they differ from those of {}.yaml.\n",
        editions::EDITIONS[edition],
        kind.default_file()
    );
    text.push_str("# Rendered; `scripts/bless` writes it.\n");
    text.push_str(&format!("defaults:\n  - /{}\n  - _self_\n\n{}\n", kind.default_file(), differing.value.to_yaml()));
    Some(text)
}

#[test]
fn verls_defaults_are_built_in() {
    for (index, edition) in editions::EDITIONS.iter().enumerate() {
        for (name, config, kind) in PRESETS {
            let path = repository().join(format!("config/verl/{edition}/{name}.yaml"));
            let Some(text) = preset(index, config, kind) else {
                assert!(!path.exists());
                continue;
            };
            if std::env::var_os("BURNISH_BLESS").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{} is out of date", path.display());
        }
    }
}

/// A built-in file of verl's defaults (`EDITION/NAME`), the settings that verl has a value for, and the file resolved.
fn presets() -> Vec<(String, Expected, Tree)> {
    let mut presets = vec![];
    for (index, edition) in editions::EDITIONS.iter().enumerate() {
        for (name, config, kind) in PRESETS {
            let settings = expected(index, config, kind);
            if !settings.is_empty() {
                presets.push((format!("{edition}/{name}"), settings, resolve_file(kind, &format!("verl/{edition}/{name}")).tree));
            }
        }
    }
    presets
}

/// Every setting that verl has a default for has it in the built-in file, resolved as Hydra resolves it.
#[test]
fn golden_verls_defaults_resolve_as_in_verl() {
    let (mut wrong, mut equal) = (vec![], 0);
    for (preset, settings, tree) in presets() {
        for (key, (verls, value)) in settings {
            let found = tree.value(&key);
            equal += 1;
            if !found.is_some_and(|found| alike(found, &value)) {
                let found = found.map(|value| value.to_yaml());
                wrong.push(format!("{preset} {key}: {found:?}, in verl {verls}: {}", value.to_yaml()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {equal} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal > 1000, "{equal}");
}

/// Our own defaults are general. None of them remains where the setting has another meaning in verl, or does not exist.
#[test]
fn no_task_value_is_left_in_verls_defaults() {
    let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (preset, settings, tree) in presets() {
        leaves("", tree.root(), &mut |key, node| {
            let deviates = DEVIATIONS.iter().any(|(known, _)| *known == key);
            if !settings.contains_key(key) && !deviates && !is_own(key, &node.value) {
                left.entry(format!("{key}: {}", node.value.to_yaml())).or_default().insert(preset.clone());
            }
        });
    }
    let unaccounted: Vec<String> = left.iter().map(|(key, presets)| format!("{key} in {presets:?}")).collect();
    assert!(unaccounted.is_empty(), "settings that verl lacks, without a line in OWN:\n{}", unaccounted.join("\n"));
}

/// Returns true if a setting that verl lacks is deliberate, and off or neutral.
fn is_own(key: &str, value: &Value) -> bool {
    let is_empty = match value {
        Value::Null | Value::Bool(false) => true,
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        _ => false,
    };
    is_empty
        || OWN.iter().any(|line| {
            let (pattern, own) = line.split_once(' ').unwrap_or((line, ""));
            let same = || own.is_empty() || alike(value, &editions::parse(own).unwrap().value);
            fits_key(pattern, key) && same()
        })
}

/// The frozen defaults equal the composition of verl's files by our implementation of Hydra.
#[test]
fn verls_files_compose_to_the_frozen_defaults() {
    for (index, edition) in editions::EDITIONS.iter().enumerate() {
        for (_, config, _) in PRESETS {
            let Some(tree) = compose_edition(edition, config, &[]) else { continue };
            let tree = tree.unwrap_or_else(|error| panic!("{edition} {config}: {error}"));
            let mut found = BTreeMap::new();
            leaves("", &tree, &mut |key, node| drop(found.insert(key.to_string(), node.value.clone())));
            let frozen = editions::keys().filter(|key| key.config == config);
            let frozen: BTreeMap<&str, Value> =
                frozen.filter_map(|key| Some((key.key, editions::parse(key.defaults[index]?).unwrap().value))).collect();
            for (key, value) in &found {
                let frozen = frozen.get(key.as_str()).unwrap_or_else(|| panic!("{edition} {config}: {key} is not frozen"));
                assert!(alike(value, frozen), "{edition} {config} {key}: {value:?}, not {frozen:?}");
            }
            // Keys that verl's main branch had at that time are in no file.
            let ahead: Vec<&&str> = frozen.keys().filter(|key| !found.contains_key(**key)).collect();
            assert!(*edition == "2026-01" || ahead.is_empty(), "{edition} {config}: {ahead:?}");
        }
    }
}

/// A configuration composed from verl's own files equals the built-in one.
#[test]
fn verls_own_files_give_the_built_in_defaults() {
    for edition in editions::EDITIONS {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files::of_edition(edition) {
            let path = folder.path().join(format!("{name}.yaml"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for (name, config, kind) in PRESETS.into_iter().filter(|(name, config, _)| name == config) {
            if files::find(edition, config).is_none() {
                continue;
            }
            let request =
                Request { config_path: Some(folder.path().into()), config_name: Some(config.into()), ..Request::default() };
            let from_files = resolve(kind, &request).unwrap_or_else(|error| panic!("{edition} {config}: {error}"));
            let built_in = resolve_file(kind, &format!("verl/{edition}/{name}"));
            let mut differs = vec![];
            // The name of the engine is not a setting. verl's files say that a router is not frozen, which holds without a value.
            let clip_range = |key: &str| {
                DEVIATIONS.iter().any(|(known, _)| *known == key)
                    || key.ends_with("rollout.name")
                    || key.ends_with("model.override_config")
            };
            let fallback = |key: &str| FALLBACKS.iter().any(|fallback| is_for(fallback, edition, config) && fallback.2 == key);
            leaves("", built_in.tree.root(), &mut |key, node| {
                let other = from_files.tree.value(key);
                if !clip_range(key) && !fallback(key) && !other.is_some_and(|other| alike(other, &node.value)) {
                    differs.push(format!(
                        "{key}: {} from files, {} built in",
                        other.map_or("-".into(), Value::to_yaml),
                        node.value.to_yaml()
                    ));
                }
            });
            assert!(from_files.problems.is_empty(), "{edition} {config}: {:?}", from_files.problems);
            assert!(differs.is_empty(), "{edition} {config}\n{}", differs.join("\n"));
        }
    }
}

/// verl's defaults load once the values that verl leaves open are given, with an estimator without a critic.
#[test]
fn verls_defaults_load() {
    for edition in editions::EDITIONS {
        let words = [
            "algorithm.adv_estimator=reinforce_plus_plus",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
        ];
        let request = Request {
            config: Some(format!("verl/{edition}/ppo_trainer")),
            overrides: words.map(str::to_owned).to_vec(),
            ..Request::default()
        };
        load::<PpoConfig>(&request, &choices(Kind::Rl)).unwrap_or_else(|error| panic!("{edition}: {error}"));
    }
}
