//! verl's programs and named configurations, and their counterparts in `trainer`.

use burnish_config::compat::Kind;
use burnish_hydra::overrides;

/// A program of verl, and its counterpart in `trainer`.
#[derive(Debug)]
pub(super) struct Program {
    /// Module, or the last parts of its name.
    pub module: &'static str,
    /// verl's own configuration file for the program.
    pub config: &'static str,
    pub kind: Kind,
    /// Built-in file with verl's defaults, below `verl/EDITION/`.
    pub preset: &'static str,
    /// Subcommand of `trainer`.
    pub subcommand: &'static str,
    pub support: Support,
}

/// The support for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// Full support.
    Same,
    /// Support with another order of generation and training, explained by the text.
    Schedule(&'static str),
    /// No support for this training loop, for this reason.
    Missing(&'static str),
}

const fn rl(module: &'static str, support: Support) -> Program {
    Program { module, config: "ppo_trainer", kind: Kind::Rl, preset: "ppo_trainer", subcommand: "", support }
}

const fn sft(module: &'static str, config: &'static str) -> Program {
    Program { module, config, kind: Kind::Sft, preset: config, subcommand: "sft", support: Support::Same }
}

const fn generation(module: &'static str, config: &'static str, preset: &'static str) -> Program {
    Program { module, config, kind: Kind::Generation, preset, subcommand: "generate", support: Support::Same }
}

/// The module with its own options for batch sizes.
const FULLY_ASYNC: &str = "fully_async_policy.fully_async_main";

/// verl's programs. `main_generation_server` reads the settings of reinforcement learning.
pub(crate) const PROGRAMS: &[Program] = &[
    rl("verl.trainer.main_ppo", Support::Same),
    rl("verl.trainer.main_ppo_sync", Support::Same),
    sft("verl.trainer.fsdp_sft_trainer", "sft_trainer"),
    sft("verl.trainer.sft_trainer", "sft_trainer_engine"),
    sft("verl.trainer.sft_trainer_ray", "sft_trainer_engine"),
    Program {
        module: "verl.trainer.main_eval",
        config: "evaluation",
        kind: Kind::Evaluation,
        preset: "evaluation",
        subcommand: "eval",
        support: Support::Same,
    },
    generation("verl.trainer.main_generation", "generation", "generation"),
    generation("verl.trainer.main_generation_server", "ppo_trainer", "generation_server"),
    rl("main_dapo", Support::Same),
    rl(FULLY_ASYNC, Support::Schedule("generation and training take turns, so that every batch comes from the newest weights")),
    rl("one_step_off_policy.main_ppo", Support::Schedule("generation and training take turns, so that no batch is one step old")),
    rl(
        "one_step_off_policy.async_main_ppo",
        Support::Schedule("generation and training take turns, so that no batch is one step old"),
    ),
    rl("transfer_queue.main_ppo", Support::Schedule("data stays in one process, without a queue")),
    rl("vla.main_ppo", Support::Missing("it trains robot policies in simulated environments")),
];

/// The programs of verl's recipes and experiments that are missing in the table.
pub(super) const OTHER: Program = rl("", Support::Missing("this training loop is not supported"));

impl Program {
    /// Returns the last part of the module's name.
    pub(super) fn name(&self) -> &'static str {
        self.module.rsplit('.').next().unwrap_or_default()
    }

    /// Returns the file of verl with the defaults for a file of another name.
    pub(super) fn config_like(&self, name: &str) -> &'static str {
        if self.config == "ppo_trainer" && name.contains("megatron") { "ppo_megatron_trainer" } else { self.config }
    }
}

/// A configuration of verl's recipes, experiments or examples: the file that it extends, and its own values.
struct NamedConfig {
    name: &'static str,
    base: &'static str,
    words: &'static [&'static str],
}

const MULTI_TURN: &[&str] = &[
    "data.max_prompt_length=1024",
    "data.max_response_length=1024",
    "data.train_batch_size=256",
    "actor_rollout_ref.rollout.multi_turn.enable=true",
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns=5",
];
const WITH_USER: &[&str] = &[
    "data.max_prompt_length=1024",
    "data.max_response_length=1024",
    "data.train_batch_size=256",
    "actor_rollout_ref.rollout.multi_turn.enable=true",
    "actor_rollout_ref.rollout.multi_turn.max_user_turns=5",
];
const LONG_MULTI_TURN: &[&str] = &[
    "data.max_prompt_length=2048",
    "data.max_response_length=2048",
    "data.train_batch_size=256",
    "actor_rollout_ref.rollout.multi_turn.enable=true",
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns=5",
];
const SEARCH_MULTI_TURN: &[&str] = &[
    "data.max_prompt_length=1024",
    "data.max_response_length=1024",
    "data.train_batch_size=256",
    "data.shuffle=false",
    "actor_rollout_ref.rollout.multi_turn.enable=true",
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns=2",
];
const DAPO: &[&str] = &["++data.gen_batch_size=null", "++reward_model.reward_manager=dapo"];
// Log-probabilities always come from generation, before the update.
const ASYNC: &[&str] = &["++data.gen_batch_size=null", "++actor_rollout_ref.rollout.calculate_log_probs=true"];

const fn named(name: &'static str, base: &'static str, words: &'static [&'static str]) -> NamedConfig {
    NamedConfig { name, base, words }
}

const NAMED: &[NamedConfig] = &[
    named("dapo_trainer", "ppo_trainer", DAPO),
    named("dapo_megatron_trainer", "ppo_megatron_trainer", DAPO),
    named("fully_async_ppo_trainer", "ppo_trainer", ASYNC),
    named("fully_async_ppo_megatron_trainer", "ppo_megatron_trainer", ASYNC),
    named("one_step_off_ppo_trainer", "ppo_trainer", &[]),
    named("one_step_off_ppo_megatron_trainer", "ppo_megatron_trainer", &[]),
    named("transfer_queue_ppo_trainer", "ppo_trainer", &[]),
    named("rob_ppo_trainer", "ppo_trainer", &[]),
    named("gsm8k_multiturn_grpo", "ppo_trainer", MULTI_TURN),
    named("gsm8k_multiturn_grpo_server", "ppo_trainer", MULTI_TURN),
    named("gsm8k_multiturn_grpo_w_interaction", "ppo_trainer", WITH_USER),
    named("gsm8k_multiturn_megatron_grpo", "ppo_megatron_trainer", MULTI_TURN),
    named("geo3k_multiturn_grpo", "ppo_trainer", LONG_MULTI_TURN),
    named("geo3k_multiturn_megatron_grpo", "ppo_megatron_trainer", LONG_MULTI_TURN),
    named("search_multiturn_grpo", "ppo_trainer", SEARCH_MULTI_TURN),
    named("search_multiturn_grpo_one_step_off", "ppo_trainer", SEARCH_MULTI_TURN),
    named("retool_multiturn_grpo", "ppo_trainer", MULTI_TURN),
];

/// Returns the file that a configuration of verl's recipes, experiments or examples extends, and its own values.
pub(crate) fn extended(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    NAMED.iter().find(|one| one.name == name).map(|one| (one.base, one.words))
}

/// Returns the overrides for a program's own schedule and batch sizes.
///
/// `fully_async_main` updates with `require_batches` mini-batches of prompts, and copies the weights to generation after
/// `trigger_parameter_sync_step` updates. The product is the batch whose responses come from the same weights.
pub(super) fn batches(program: &Program, words: &[String]) -> Vec<String> {
    // With separate devices for generation, verl's engine is not hybrid; this program always shares the weights.
    let mut added: Vec<String> = match program.support {
        Support::Schedule(_) => vec!["++actor_rollout_ref.hybrid_engine=true".into()],
        _ => vec![],
    };
    if program.module != FULLY_ASYNC {
        return added;
    }
    let value = |key: &str| {
        let parsed = words.iter().rev().filter_map(|word| overrides::parse(word).ok());
        parsed.into_iter().find(|one| one.key == key).and_then(|one| one.value?.value.plain_text())
    };
    let number =
        |key: &str, default: u64| value(key).and_then(|text| text.parse().ok()).filter(|number| *number > 0).unwrap_or(default);
    let mini = number("actor_rollout_ref.actor.ppo_mini_batch_size", 256);
    let (batches, steps) = (number("async_training.require_batches", 1), number("async_training.trigger_parameter_sync_step", 4));
    let batch = mini.saturating_mul(batches).saturating_mul(steps);
    added.extend([format!("data.train_batch_size={batch}"), "++data.gen_batch_size=null".to_string()]);
    if value("rollout.total_rollout_steps").is_some() {
        added.push(format!("trainer.total_training_steps={}", number("rollout.total_rollout_steps", batch).div_ceil(batch)));
    }
    added.extend(value("rollout.test_freq").map(|every| format!("trainer.test_freq={every}")));
    added
}
