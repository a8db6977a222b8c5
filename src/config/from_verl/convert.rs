//! The conversion of a command of verl.

use super::converted::{Converted, Source, placeholder};
use super::groups::{self, Choice};
use super::recipe;
use crate::config::compat::editions::{self, EDITIONS};
use crate::config::compat::table::VALUES;
use crate::config::compat::{Fate, Ignored, Kind, Verl, files, inline, leaves, row, set_aside};
use crate::config::shell::{self, Hole, holes_of, replace_holes};
use crate::hydra::overrides::{self, Operation, Override};
use crate::hydra::{Adapt, ConfigError, Node, Origin, Problem, Value};

/// A program of verl, and its counterpart here.
struct Program {
    module: &'static str,
    /// verl's own file of settings, whose keys the program takes.
    config: &'static str,
    kind: Kind,
    /// The built-in file with verl's defaults, below `verl/EDITION/`.
    preset: &'static str,
    /// The subcommand of `trainer`.
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

/// Converts the first command of verl in a text.
///
/// # Errors
/// If the text has no command of verl, if a word cannot be known without running the script, or if verl would refuse the command.
pub fn convert(source: &Source) -> Result<Converted, ConfigError> {
    let invocation = invocation(source)?;
    let editions: Vec<&'static str> = match source.edition {
        Some(wanted) => EDITIONS.into_iter().filter(|edition| *edition == wanted).collect(),
        // An edition that lacks a group or option of the command, though the newest has it, is not meant.
        None => EDITIONS[1..].iter().copied().filter(|edition| has_groups(edition, &invocation.overrides)).collect(),
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

/// True if an edition has every group and option in the overrides that the newest edition has.
fn has_groups(edition: &str, overrides: &[String]) -> bool {
    let newest = EDITIONS[EDITIONS.len() - 1];
    overrides.iter().filter_map(|word| word.split_once('=')).all(|(group, option)| {
        let file = format!("{group}/{option}");
        (!files::is_group(newest, group) || files::is_group(edition, group))
            && (files::find(newest, &file).is_none() || files::find(edition, &file).is_some())
    })
}

/// A call of one of verl's programs.
struct Invocation {
    program: &'static Program,
    config: String,
    /// The folder of `--config-path`.
    path: Option<String>,
    overrides: Vec<String>,
    /// The lines of other calls.
    further: Vec<usize>,
    /// The holes in the overrides.
    holes: Vec<Hole>,
    /// The holes in place of overrides.
    open: Vec<Hole>,
}

fn invocation(source: &Source) -> Result<Invocation, Problem> {
    let name = source.around.name;
    let at = |line: usize, message: &str| {
        let text = source.text.lines().nth(line - 1).unwrap_or_default().trim();
        Problem::new("", format!("{name}:{line}: {message}\n      {text}"))
    };
    let script = shell::read(source.text, &source.around).map_err(|error| at(error.line, &error.message))?;
    let mut found = script.calls.iter().filter_map(|call| Some((call, program(&call.words)?)));
    let Some((call, (program, rest))) = found.next() else {
        if let Some(line) = script.ended {
            let help = "give it what it asks for: trainer from-verl @script.sh NAME=VALUE -- ARGUMENT";
            return Err(at(line, "the script ends here, before it launches a trainer").help(help));
        }
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.module).collect();
        let message = format!("{name}: no command of verl's own trainers");
        return Err(Problem::new("", message).help(format!("there are python3 -m verl.trainer.{{{}}}", known.join(","))));
    };
    let line = call.line;
    let (mut config, mut path, mut overrides) = (program.config.to_string(), None, vec![]);
    let mut open = vec![];
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
            _ if !holes_of(flag).is_empty() => {
                // A word that is all hole may be any number of overrides; an unset variable is none.
                let is_set = |hole: &usize| !script.holes[*hole].is_unset;
                open.extend(holes_of(flag).into_iter().filter(is_set).map(|hole| script.holes[hole].clone()));
            }
            _ => overrides.push(replace_holes(word, &placeholder)),
        }
    }
    let further = found.map(|(call, _)| call.line).filter(|other| *other != line).collect();
    Ok(Invocation { program, config, path, overrides, further, holes: script.holes.clone(), open })
}

/// Returns the program that a command calls, as a module or by its path, and the words after it.
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
    let choice = Choice::new(edition, &call.config, &call.overrides).ok_or_else(|| {
        let known = "ppo_trainer, ppo_megatron_trainer, sft_trainer, generation and evaluation";
        Problem::new("", format!("`{}` is no configuration of verl {edition}", call.config))
            .help(format!("known are {known}; a file of your own is given to trainer itself: trainer --config FILE OVERRIDES"))
    })?;
    let Choice { config, framework, tree: mut after, mut given, mut ignored, mut problems, words } = choice?;
    let defaults = crate::config::defaults(kind.default_file())?;
    let mut written = vec![];
    for word in words {
        match overrides::parse(word) {
            Err(problem) => problems.push(problem),
            Ok(one) if one.key == "hydra" || one.key.starts_with("hydra.") => {
                ignored.push(Ignored::hydra(one.key, &one.value.map_or(Value::Null, |node| node.value)));
            }
            Ok(one) => {
                // Scripts for other releases have keys that the edition lacks; those that are in the table are accepted.
                let is_known = || one.operation != Operation::Delete && row(kind, &one.key, defaults.root()).is_some();
                problems.extend(one.clone().apply(&mut after).err().filter(|_| after.get(&one.key).is_some() || !is_known()));
                if editions::unread(edition, &config, framework, &one.key).is_none() {
                    written.push(word.clone());
                }
                given.push(one);
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
    given.retain(|one| {
        let reason = editions::unread(edition, &config, framework, &one.key);
        let value = || one.value.as_ref().map_or("null".into(), |node| inline(&node.value));
        ignored.extend(reason.filter(|_| !groups::is_from(&one.origin)).map(|reason| Ignored {
            key: one.key.clone(),
            value: value(),
            reason,
        }));
        reason.is_none()
    });
    let of_groups = given.iter().filter(|one| groups::is_from(&one.origin)).filter_map(|one| {
        let is_setting = row(kind, &one.key, defaults.root()).is_none_or(|row| row.target.is_some());
        Some(format!("{}={}", one.key, inline(&one.value.as_ref().filter(|_| is_setting)?.value)))
    });
    let written: Vec<String> = of_groups.chain(written).collect();
    let name = if config == "ppo_megatron_trainer" { &config } else { call.program.preset };
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
        holes: call.holes.clone(),
        open: call.open.clone(),
    };
    let settings = sort(given, &mut converted, defaults.root())?;
    converted.recipe = recipe::write(&converted, &settings);
    Ok(converted)
}

/// Applies the overrides to the built-in defaults, as a run does, and sorts the changed keys; returns the settings of the recipe.
fn sort(given: Vec<Override>, converted: &mut Converted, defaults: &Node) -> Result<Node, ConfigError> {
    let verl = Verl::new(converted.kind, defaults);
    let mut root = defaults.clone();
    let mut problems = vec![];
    for one in given {
        // That the key may be added, changed or deleted was checked on verl's own keys.
        let operation = if one.operation == Operation::Delete { one.operation } else { Operation::Force };
        match verl.overriding(Override { operation, ..one }, &root) {
            Ok(adapted) => problems.extend(adapted.into_iter().filter_map(|one| one.apply(&mut root).err())),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let aside = set_aside(converted.kind, &root, defaults);
    converted.renamed = verl.renamed().into_iter().chain(aside.renamed).filter(|one| !groups::is_from(&one.origin)).collect();
    converted.refused = aside.problems;
    let mut settings = Node::new(Value::Map(Default::default()), root.origin.clone());
    leaves("", &aside.settings, &mut |key, node| {
        if matches!(node.origin, Origin::Override(_)) && row(converted.kind, key, defaults).is_none() {
            // The run itself reports which values it replaces.
            let is_replaced = VALUES.iter().any(|(of, ..)| *of == key);
            settings.put(key, root.get(key).filter(|_| is_replaced).unwrap_or(node).clone());
        }
    });
    let mut others = vec![];
    leaves("", &root, &mut |key, node| {
        let Some(row) = row(converted.kind, key, defaults).filter(|_| matches!(node.origin, Origin::Override(_))) else { return };
        match row.fate {
            Fate::Refused(_) if !groups::is_from(&node.origin) => drop(settings.put(key, node.clone())),
            Fate::Ignored(reason) if groups::is_told(key, &node.origin) => others.push((key.to_string(), node.clone(), reason)),
            _ => {}
        }
    });
    // A setting may refer to a key without effect.
    let refers = settings.value.to_yaml().contains("${");
    let is_read = |key: &str| aside.chosen.contains(&key);
    for (key, node, reason) in others.into_iter().filter(|(key, ..)| !is_read(key)) {
        if refers {
            settings.put(&key, node.clone());
        }
        converted.ignored.push(Ignored { key, value: inline(&node.value), reason });
    }
    Ok(settings)
}
