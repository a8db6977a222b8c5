//! `trainer from-verl`: a command line or script of verl as a recipe of ours.
//!
//! The overrides are first applied to verl's own keys, by Hydra's rules, so that what verl refuses is refused here with a
//! better message. What they changed is then sorted by the table of [`super::compat`].

mod recipe;
mod shell;

use super::compat::editions::{self, EDITIONS};
use super::compat::{Fate, Ignored, Kind, Renamed, Verl, inline, leaves, row, set_aside};
use super::error::{ConfigError, Problem};
use super::hydra::Adapt;
use super::overrides::{self, Operation, Override};
use super::provenance::Origin;
use super::tree::{Node, Value};
use std::sync::Arc;

/// A program of verl, and what answers to it here.
struct Program {
    module: &'static str,
    /// verl's own file of settings, whose keys it takes.
    config: &'static str,
    kind: Kind,
    /// The built-in file with verl's defaults, below `verl/EDITION/`.
    preset: &'static str,
    /// The command, `trainer` being understood.
    subcommand: &'static str,
}

/// verl's programs. `main_generation_server` reads the settings of reinforcement learning.
const PROGRAMS: &[Program] = &[
    Program { module: "main_ppo", config: "ppo_trainer", kind: Kind::Rl, preset: "ppo_trainer", subcommand: "" },
    Program { module: "main_ppo_sync", config: "ppo_trainer", kind: Kind::Rl, preset: "ppo_trainer", subcommand: "" },
    Program { module: "fsdp_sft_trainer", config: "sft_trainer", kind: Kind::Sft, preset: "sft_trainer", subcommand: "sft" },
    Program {
        module: "sft_trainer",
        config: "sft_trainer_engine",
        kind: Kind::Sft,
        preset: "sft_trainer_engine",
        subcommand: "sft",
    },
    Program { module: "main_eval", config: "evaluation", kind: Kind::Evaluation, preset: "evaluation", subcommand: "eval" },
    Program {
        module: "main_generation",
        config: "generation",
        kind: Kind::Generation,
        preset: "generation",
        subcommand: "generate",
    },
    Program {
        module: "main_generation_server",
        config: "ppo_trainer",
        kind: Kind::Generation,
        preset: "generation_server",
        subcommand: "generate",
    },
];

/// A command of verl, converted.
#[derive(Debug)]
pub struct Converted {
    pub kind: Kind,
    /// The edition whose keys and defaults were taken.
    pub edition: &'static str,
    /// The subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
    /// The built-in file with verl's defaults, for `--config`.
    pub preset: String,
    /// The overrides as they were written, without those of Hydra itself.
    pub overrides: Vec<String>,
    /// The recipe file.
    pub recipe: String,
    pub renamed: Vec<Renamed>,
    pub ignored: Vec<Ignored>,
    /// Why a run of the recipe would be refused, as far as verl's keys are concerned.
    pub refused: Vec<Problem>,
    /// Lines of the text with further commands of verl, which were not converted.
    pub further: Vec<usize>,
}

/// What is to be converted.
pub struct Source<'a> {
    /// The name that messages give it: the script, or `command`.
    pub name: &'a str,
    pub text: &'a str,
    /// One of [`EDITIONS`]; `None` takes the first of 2026-01 and 2026-08 that the command fits.
    pub edition: Option<&'a str>,
    /// Looks up a variable that the script does not set itself.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

/// Converts the first command of verl in a text.
///
/// # Errors
/// A text that holds none, words that cannot be known without running the script, and everything that verl refuses.
pub fn convert(source: &Source) -> Result<Converted, ConfigError> {
    let invocation = invocation(source)?;
    let editions: Vec<&'static str> = match source.edition {
        Some(wanted) => EDITIONS.into_iter().filter(|edition| *edition == wanted).collect(),
        None => EDITIONS[1..].to_vec(),
    };
    let mut attempts = editions.into_iter().map(|edition| convert_for(edition, &invocation));
    let first = attempts.next().unwrap_or_else(|| {
        let message = format!("there is no edition `{}`", source.edition.unwrap_or_default());
        Err(Problem::new("", message).help(format!("there are {}", EDITIONS.join(", "))).into())
    });
    match first {
        Err(error) => attempts.find_map(Result::ok).ok_or(error),
        converted => converted,
    }
}

/// A call of one of verl's programs.
struct Invocation {
    program: &'static Program,
    config: String,
    /// The folder that `--config-path` names.
    path: Option<String>,
    overrides: Vec<String>,
    /// The lines of further calls.
    further: Vec<usize>,
}

fn invocation(source: &Source) -> Result<Invocation, Problem> {
    let at = |error: shell::ShellError| {
        let text = source.text.lines().nth(error.line - 1).unwrap_or_default().trim();
        let problem = Problem::new("", format!("{}:{}: {}\n      {text}", source.name, error.line, error.message));
        if error.help.is_empty() { problem } else { problem.help(error.help) }
    };
    let commands = shell::commands(source.text, source.environment).map_err(at)?;
    let mut found = commands.iter().filter_map(|command| Some((command, program(&command.words)?)));
    let Some((command, (program, rest))) = found.next() else {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.module).collect();
        let message = format!("{}: no command of verl's own trainers", source.name);
        return Err(Problem::new("", message).help(format!("there are python3 -m verl.trainer.{{{}}}", known.join(","))));
    };
    if let Some(error) = command.unreadable() {
        return Err(at(error));
    }
    let (mut config, mut path, mut overrides) = (program.config.to_string(), None, vec![]);
    let mut words = rest.iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value.to_string())));
        match flag {
            "--config-name" | "-cn" => {
                let name = value.or_else(|| words.next().cloned()).unwrap_or_default();
                let name = name.trim_end_matches(".yaml").to_string();
                let own = if name == "sft_trainer" { program.config } else { name.as_str() };
                config = own.to_string();
            }
            "--config-path" | "-cp" | "--config-dir" | "-cd" => path = value.or_else(|| words.next().cloned()),
            _ if word.starts_with('-') => {
                return Err(Problem::new("", format!("`{word}` is no option of {}", program.module))
                    .help("overrides are written as key=value; --config-path and --config-name are known"));
            }
            _ => overrides.push(word.clone()),
        }
    }
    let further = found.map(|(command, _)| command.line).collect();
    Ok(Invocation { program, config, path, overrides, further })
}

/// The program that the words of a command call, as a module or by its path, and the words after it.
fn program(words: &[String]) -> Option<(&'static Program, &[String])> {
    let calls = words.iter().enumerate();
    calls.filter(|(_, word)| !word.contains('=')).find_map(|(index, word)| {
        let module = word.trim_end_matches(".py").replace('/', ".");
        let last = module.contains("verl.trainer.").then(|| module.rsplit('.').next().unwrap_or_default())?;
        Some((PROGRAMS.iter().find(|program| program.module == last)?, &words[index + 1..]))
    })
}

fn convert_for(edition: &'static str, call: &Invocation) -> Result<Converted, ConfigError> {
    let kind = call.program.kind;
    let before = verl_tree(edition, &call.config).ok_or_else(|| {
        let known = "ppo_trainer, ppo_megatron_trainer, sft_trainer, generation and evaluation";
        Problem::new("", format!("`{}` is no configuration of verl {edition}", call.config))
            .help(format!("known are {known}; a file of your own is given to trainer itself: trainer --config FILE OVERRIDES"))
    })?;
    let mut after = before.clone();
    let (mut problems, mut given, mut written, mut ignored) = (vec![], vec![], vec![], vec![]);
    for word in &call.overrides {
        match overrides::parse(word) {
            Err(problem) => problems.push(problem),
            Ok(one) if one.key == "hydra" || one.key.starts_with("hydra.") => {
                ignored.push(Ignored::hydra(one.key, &one.value.map_or(Value::Null, |node| node.value)));
            }
            Ok(one) if is_group(&one, &before) => match framework(one) {
                Ok(one) => ignored.push(one),
                Err(problem) => problems.push(problem),
            },
            Ok(one) => {
                problems.extend(one.clone().apply(&mut after).err());
                given.push(one);
                written.push(word.clone());
            }
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    ignored.extend(call.path.iter().map(|path| Ignored {
        key: "--config-path".into(),
        value: path.clone(),
        reason: "the settings are verl's own; a file of yours is given to trainer itself, with --config",
    }));
    let name = if call.config == "ppo_megatron_trainer" { "ppo_megatron_trainer" } else { call.program.preset };
    let mut converted = Converted {
        kind,
        edition,
        subcommand: call.program.subcommand,
        preset: format!("verl/{edition}/{name}"),
        overrides: written,
        recipe: String::new(),
        renamed: vec![],
        ignored,
        refused: vec![],
        further: call.further.clone(),
    };
    let settings = sort(given, &mut converted)?;
    converted.recipe = recipe::write(&converted, &settings);
    Ok(converted)
}

/// verl's keys with their defaults; none where the edition has no such file.
fn verl_tree(edition: &str, config: &str) -> Option<Node> {
    let index = EDITIONS.iter().position(|name| *name == edition)?;
    let mut root = Node::new(Value::Map(vec![]), Origin::Override(Arc::from("")));
    for key in editions::keys().filter(|key| key.config == config) {
        let Some(default) = key.defaults[index].and_then(editions::parse) else { continue };
        root.put(key.key, default);
    }
    (root.value != Value::Map(vec![])).then_some(root)
}

/// Whether an override such as `engine=fsdp` chooses a file for a whole group.
fn is_group(one: &Override, tree: &Node) -> bool {
    let is_name = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Text(_)));
    let names_mapping = tree.get(&one.key).is_some_and(|node| matches!(&node.value, Value::Map(map) if !map.is_empty()));
    one.package.is_some() || one.key.contains('/') || is_name && names_mapping
}

/// The training frameworks, parts of the names of the files that verl has for them.
const FRAMEWORKS: &[&str] = &["dp", "fsdp", "megatron", "veomni", "torchtitan", "mindspeed", "automodel"];

/// The choice of a framework's file for a group, which has no effect.
fn framework(one: Override) -> Result<Ignored, Problem> {
    let option = one.value.as_ref().and_then(|node| node.value.plain_text()).unwrap_or_default();
    let key = one.package.as_ref().map_or(one.key.clone(), |package| format!("{}@{package}", one.key));
    if option.split('_').any(|part| FRAMEWORKS.contains(&part)) {
        return Ok(Ignored { key, value: option, reason: "it chooses the defaults of a training framework" });
    }
    let message = format!("`{key}` is a group of settings, and `{option}` is no file of it that is known here");
    Err(Problem::new(&key, message).at(&one.origin).help(format!("set its keys, such as {}.KEY=VALUE", one.key)))
}

/// A setting that has an effect here and none in verl, which writes over it.
const OVERWRITTEN: &str = "optim.total_training_steps";

/// Applies the overrides to our own defaults, as a run does, and sorts what they changed; returns what the recipe holds.
fn sort(given: Vec<Override>, converted: &mut Converted) -> Result<Node, ConfigError> {
    let defaults = super::defaults(converted.kind.default_file())?;
    let verl = Verl::new(converted.kind, defaults.root());
    let mut root = defaults.root().clone();
    let mut problems = vec![];
    for one in given {
        // Whether it may be added, changed or deleted was seen on verl's own keys.
        let operation = if one.operation == Operation::Delete { one.operation } else { Operation::Force };
        match verl.overriding(Override { operation, ..one }, &root) {
            Ok(adapted) => problems.extend(adapted.into_iter().filter_map(|one| one.apply(&mut root).err())),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let aside = set_aside(converted.kind, &root, defaults.root());
    converted.renamed = verl.renamed();
    converted.refused = aside.problems;
    let mut settings = Node::new(Value::Map(vec![]), root.origin.clone());
    let mut others = vec![];
    leaves("", &root, &mut |key, node| {
        if !matches!(node.origin, Origin::Override(_)) {
            return;
        }
        if key.ends_with(OVERWRITTEN) {
            return others.push((
                key.to_string(),
                node.clone(),
                "verl sets it to the length of the run, which is the default here",
            ));
        }
        match row(converted.kind, key, defaults.root()).map(|row| row.fate) {
            None | Some(Fate::Refused(_)) => drop(settings.put(key, node.clone())),
            Some(Fate::Ignored(reason)) => others.push((key.to_string(), node.clone(), reason)),
            Some(_) => {}
        }
    });
    // A setting may refer to what has no effect itself.
    let refers = settings.value.to_yaml().contains("${");
    for (key, node, reason) in others {
        if refers {
            settings.put(&key, node.clone());
        }
        converted.ignored.push(Ignored { key, value: inline(&node.value), reason });
    }
    Ok(settings)
}
