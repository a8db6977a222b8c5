//! Words that people type at first and that are neither commands, flags nor overrides, with what to type instead.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;

use super::kinds::choices;
use burnish_config::Request;
use burnish_config::kinds::{ConfigKind, KINDS, infer, named};
use burnish_util::shell;
use burnish_util::suggest::did_you_mean;

/// Hydra's flags that this program does not take, and the replacement of each.
const HYDRA: &[(&[&str], &str)] = &[
    (
        &["-m", "--multirun"],
        "only the commands that train start several runs: trainer --multirun, trainer sft --multirun, and likewise rm, dpo, distill",
    ),
    (&["-c", "--cfg"], "`trainer config show` prints the resolved configuration"),
];

/// Flags of other trainers, and the settings that they mean: the first one that the command has counts.
pub(super) const FLAGS: &[(&[&str], &[&str])] = &[
    (&["lr", "learning_rate", "actor_learning_rate"], &["actor_rollout_ref.actor.optim.lr", "optim.lr"]),
    (&["critic_learning_rate", "critic_lr"], &["critic.optim.lr"]),
    (
        &["warmup_ratio", "lr_warmup_ratio"],
        &["actor_rollout_ref.actor.optim.lr_warmup_steps_ratio", "optim.lr_warmup_steps_ratio"],
    ),
    (&["weight_decay", "l2"], &["actor_rollout_ref.actor.optim.weight_decay", "optim.weight_decay"]),
    (&["model", "model_name", "model_name_or_path", "model_path", "pretrain"], &["actor_rollout_ref.model.path", "model.path"]),
    (&["lora_r", "lora_rank", "rank"], &["actor_rollout_ref.model.lora_rank", "model.lora_rank"]),
    (
        &["data", "dataset", "dataset_name", "train_data", "train_file", "train_files", "prompt_data"],
        &["data.train_files", "data.path"],
    ),
    (&["val_file", "val_files", "val_data", "eval_data", "eval_dataset"], &["data.val_files"]),
    (&["batch_size", "bs", "train_batch_size", "rollout_batch_size"], &["data.train_batch_size"]),
    (
        &["micro_batch_size", "micro_train_batch_size", "per_device_train_batch_size"],
        &["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "data.micro_batch_size_per_gpu"],
    ),
    (&["epochs", "num_epochs", "num_train_epochs", "max_epochs"], &["trainer.total_epochs"]),
    (&["steps", "max_steps", "total_steps", "iters"], &["trainer.total_training_steps"]),
    (&["n", "num_generations", "n_samples_per_prompt"], &["actor_rollout_ref.rollout.n", "rollout.n"]),
    (&["max_prompt_length", "prompt_max_len"], &["data.max_prompt_length"]),
    (
        &["max_response_length", "max_completion_length", "max_new_tokens", "generate_max_len"],
        &["data.max_response_length", "rollout.response_length"],
    ),
    (&["max_length", "max_len", "max_seq_length"], &["data.max_length"]),
    (&["temperature"], &["actor_rollout_ref.rollout.temperature", "rollout.temperature"]),
    (&["beta"], &["algorithm.beta", "actor_rollout_ref.actor.kl_loss_coef"]),
    (&["kl_coef", "init_kl_coef"], &["algorithm.kl_ctrl.kl_coef"]),
    (&["loss", "loss_type"], &["algorithm.loss_type", "actor_rollout_ref.actor.policy_loss.loss_mode"]),
    (&["algo", "algorithm", "advantage_estimator", "adv_estimator"], &["algorithm.adv_estimator"]),
    (&["reward", "reward_fn", "reward_funcs", "remote_rm_url"], &["custom_reward_function.path"]),
    (&["seed"], &["trainer.seed", "rollout.seed"]),
    (&["device", "gpu", "gpus"], &["trainer.device"]),
    (&["output", "output_dir", "save_path", "out"], &["trainer.default_local_dir", "data.output_path"]),
    (&["logger", "report_to", "use_wandb"], &["trainer.logger"]),
    (&["name", "run_name", "experiment", "experiment_name"], &["trainer.experiment_name"]),
    (&["project", "project_name", "wandb_project"], &["trainer.project_name"]),
    (&["save_steps", "save_freq"], &["trainer.save_freq"]),
    (&["eval_steps", "test_freq"], &["trainer.test_freq"]),
    (&["resume", "resume_from_checkpoint", "load_checkpoint"], &["trainer.resume_mode"]),
];

/// First words that mean another command, and the words to type.
pub(super) const COMMANDS: &[(&[&str], &str)] = &[
    (&["train", "rl"], "trainer --config ppo_trainer.yaml"),
    (&["ppo"], "trainer --config ppo_trainer.yaml algorithm.adv_estimator=gae"),
    (&["finetune", "fine-tune"], "trainer sft --config sft_trainer.yaml"),
    (&["reward-model", "prm"], "trainer rm --config rm_trainer.yaml"),
    (&["infer", "inference", "rollout"], "trainer generate --config generation.yaml"),
    (&["evaluate", "score"], "trainer eval --config evaluation.yaml"),
    (&["ls", "list", "ps", "status"], "trainer runs ls"),
    (&["show", "logs", "log"], "trainer runs show RUN"),
    (&["rm-run", "prune", "delete"], "trainer runs rm RUN"),
    (&["explain", "search"], "trainer config explain WORD"),
    (&["diff", "compare"], "trainer runs diff RUN RUN"),
    (&["download", "pull"], "trainer fetch NAME"),
    (&["upload", "push"], "trainer export RUN --push-to-hub NAME"),
    (&["convert"], "trainer run @SCRIPT"),
    (&["new", "create"], "trainer init NAME --model MODEL --data FILE"),
    (&["version"], "trainer --version"),
    (&["env", "info"], "trainer --version --verbose"),
    (&["gpu", "gpus"], "trainer devices"),
];

/// Settings that are known by the names that they take, in the order of the search.
const NAMED_BY_VALUE: &[&str] =
    &["algorithm.adv_estimator", "actor_rollout_ref.actor.policy_loss.loss_mode", "algorithm.loss_type"];

/// Returns the message about the first word that is neither a command, a flag nor an override, with what to type instead. `words`:
/// the command line after the name of the program.
pub(super) fn refusal(root: &Command, words: &[OsString]) -> Option<String> {
    let written: Vec<&str> = words.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let hydra = |word: &&str| HYDRA.iter().find(|(flags, _)| flags.contains(&word.split('=').next().unwrap_or(word)));
    let read = ReadWords::new(root, &written);
    if let Some((word, (_, instead))) =
        written.iter().find_map(|word| Some((word, hydra(word).filter(|one| !has(read.command, one.0))?)))
    {
        return Some(format!("there is no flag `{word}`: {instead}"));
    }
    if read.command.get_name() == root.get_name()
        && let Some(word) = read.positionals.first().filter(|word| written.first() == Some(word) && !is_override(word))
        && *word != "help"
    {
        return Some(not_a_command(root, word));
    }
    let known = kind(root, read.command)?;
    let flag = read.unknown.iter().find_map(|(flag, value)| not_a_flag(known, flag, *value));
    flag.or_else(|| read.positionals.iter().filter(|word| !is_override(word)).find_map(|word| not_an_override(known, word)))
}

/// Returns true if a command has one of these flags.
fn has(command: &Command, flags: &[&str]) -> bool {
    command.get_arguments().filter_map(|argument| argument.get_long()).any(|long| flags.contains(&&*format!("--{long}")))
}

/// Returns the kind of configuration whose overrides a command takes.
fn kind(root: &Command, command: &Command) -> Option<&'static ConfigKind> {
    command.get_positionals().find(|positional| positional.get_id() == "overrides")?;
    if command.get_name() == root.get_name() { KINDS.first() } else { named(command.get_name()) }
}

fn is_override(word: &str) -> bool {
    word.contains('=') || word.starts_with(['+', '~'])
}

fn not_a_command(root: &Command, word: &str) -> String {
    let refused = format!("there is no command `{word}`");
    if let Some((_, instead)) = COMMANDS.iter().find(|(names, _)| names.contains(&word)) {
        return format!("{refused}: type `{instead}`");
    }
    if let Some(meant) = meant(None, word) {
        return format!("{refused}: {meant}");
    }
    let shown: Vec<&str> = root.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
    let similar = did_you_mean(word, shown.iter().copied());
    format!(
        "{refused}.{similar} The commands are {}; without one, trainer trains, and each further word is a key=value",
        shown.join(", ")
    )
}

fn not_an_override(known: &ConfigKind, word: &str) -> Option<String> {
    Some(format!("`{word}` is not an override: {}", meant(Some(known), word)?))
}

/// Returns what a bare word means: a file, or a name that a setting takes. `known`: the kind of configuration of the command, if
/// there is a command.
fn meant(known: Option<&ConfigKind>, word: &str) -> Option<String> {
    let is_yaml = word.ends_with(".yaml") || word.ends_with(".yml");
    if is_yaml || KINDS.iter().any(|known| known.file == word) {
        let request = Request { config: Some(word.to_owned()), ..Request::default() };
        let command = known.or_else(|| infer(&request).ok()).unwrap_or(&KINDS[0]);
        return Some(format!("type `{}`", with_config(command, word)));
    }
    if Path::new(word).is_file() {
        let script = shell::word(Path::new(word));
        return Some(format!("type `trainer run @{script}` to train what a script of verl, TRL or OpenRLHF trains"));
    }
    let kinds = known.map_or_else(|| KINDS.iter().collect::<Vec<_>>(), |known| vec![known]);
    kinds.into_iter().find_map(|kind| {
        let key = NAMED_BY_VALUE.iter().find(|key| choices(kind.kind).find(key, word).is_some())?;
        Some(match known {
            Some(_) => format!("type {key}={word}"),
            None => format!("type `{} {key}={word}`", kind.command),
        })
    })
}

/// Returns the command of a kind with this configuration.
fn with_config(known: &ConfigKind, config: &str) -> String {
    known.command.replace(&format!("{}.yaml", known.file), &shell::word(Path::new(config)))
}

/// Returns the message about an unknown flag that means a setting.
fn not_a_flag(known: &ConfigKind, flag: &str, value: Option<&str>) -> Option<String> {
    let name = flag.trim_start_matches('-').replace('-', "_").to_lowercase();
    let (_, keys) = FLAGS.iter().find(|(names, _)| names.contains(&name.as_str()))?;
    let defaults = known.defaults().ok()?;
    let key = keys.iter().find(|key| defaults.value(key).is_some())?;
    let setting = shell::word(Path::new(&format!("{key}={}", value.unwrap_or("VALUE"))));
    Some(format!("there is no flag `{flag}`: a setting is written as key=value; type {setting}"))
}

/// The words of a command line, sorted by clap's table.
struct ReadWords<'a> {
    command: &'a Command,
    positionals: Vec<&'a str>,
    /// Unknown flags with their values.
    unknown: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> ReadWords<'a> {
    fn new(root: &'a Command, words: &[&'a str]) -> Self {
        let mut read = Self { command: root, positionals: vec![], unknown: vec![] };
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let known = read.command.get_arguments().find(|argument| argument.get_long() == Some(name));
                match known {
                    Some(option) if option.get_action().takes_values() && value.is_none() => drop(words.next()),
                    Some(_) => {}
                    None if ["help", "version"].contains(&name) => {}
                    None => {
                        let next = || words.next_if(|next| !next.starts_with("--") && !is_override(next));
                        read.unknown.push((&word[..name.len() + 2], value.or_else(next)));
                    }
                }
            } else if word.starts_with('-') {
            } else if let Some(command) = read.command.find_subcommand(word).filter(|_| read.positionals.is_empty()) {
                read.command = command;
            } else {
                read.positionals.push(word);
            }
        }
        read
    }
}
