//! The conversion of a command of verl.

use super::converted::{Blocked, VerlConversion, VerlSource, placeholder};
use super::groups::{self, GroupChoice};
use super::programs::{PROGRAMS, Program, Support, batches, extended, extended_names, program};
use super::recipe;
use crate::shell::{self, Unknown, replace_unknowns, unknowns_in};
use burnish_config::compat::editions::{self, EDITIONS};
use burnish_config::compat::table::VALUES;
use burnish_config::compat::{
    Ignored, KeyTreatment, VerlAdapter, below_open_mapping, files, inline, leaves, remove_unsupported, row,
};
use burnish_hydra::overrides::{self, Operation, Override};
use burnish_hydra::{Adapt, ConfigError, Node, Origin, Problem, Value};

/// Converts the first command of verl in a text.
///
/// # Errors
/// If the text has no command of verl, or verl would refuse the command.
pub fn convert(source: &VerlSource) -> Result<VerlConversion, ConfigError> {
    let invocation = invocation(source)?;
    let editions: Vec<&'static str> = match source.edition {
        Some(wanted) => EDITIONS.into_iter().filter(|edition| *edition == wanted).collect(),
        // Exclude editions that lack a group or option of the command that the newest edition has.
        None => EDITIONS[1..].iter().copied().filter(|edition| has_groups(edition, &invocation.overrides)).collect(),
    };
    let mut attempts: Vec<_> = editions.into_iter().map(|edition| convert_for(edition, &invocation)).collect();
    // Choose the edition with the fewest unknown keys, the older one of two.
    let unknown = |attempt: &Result<VerlConversion, _>| attempt.as_ref().map_or(usize::MAX, |converted| converted.unknown_keys);
    let best = (0..attempts.len()).min_by_key(|index| unknown(&attempts[*index])).ok_or_else(|| {
        let message = format!("`{}` is not a known edition of verl", source.edition.unwrap_or_default());
        Problem::new("", message).help(format!("known are {}", EDITIONS.join(", ")))
    })?;
    attempts.swap_remove(best)
}

/// Returns true if an edition has every group and option of the overrides that the newest edition has.
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
    /// Folder of `--config-path`.
    path: Option<String>,
    overrides: Vec<String>,
    /// Lines of other calls.
    further: Vec<usize>,
    /// Unknowns in the overrides.
    unknowns: Vec<Unknown>,
    /// Unknowns in place of whole overrides.
    unknown_words: Vec<Unknown>,
    /// Advice about the words.
    notes: Vec<String>,
}

fn invocation(source: &VerlSource) -> Result<Invocation, Problem> {
    let name = source.env.name;
    let at = |line: usize, message: &str| {
        let text = source.text.lines().nth(line - 1).unwrap_or_default().trim();
        Problem::new("", format!("{name}:{line}: {message}\n      {text}"))
    };
    let is_meant = |words: &[String]| program(words).is_some();
    let script = shell::read(source.text, &source.env, &is_meant).map_err(|error| at(error.line, &error.message))?;
    let mut found = script.calls.iter().filter_map(|call| Some((call, program(&call.words)?)));
    let Some((call, (program, rest))) = found.next() else {
        if let Some(line) = script.ended {
            let help = "set its variables and arguments: trainer from-verl @script.sh NAME=VALUE -- ARGUMENT";
            return Err(at(line, "the script ends here, before it launches a trainer").help(help));
        }
        let known: Vec<&str> = PROGRAMS.iter().filter_map(|program| program.module.strip_prefix("verl.trainer.")).collect();
        let message = format!("{name}: there is no command of verl's own trainers");
        let help = format!("supported are python3 -m verl.trainer.{{{}}}, and the programs of verl's recipes", known.join(","));
        return Err(Problem::new("", message).help(help));
    };
    let line = call.line;
    let (mut config, mut path, mut overrides) = (program.config.to_string(), None, vec![]);
    let (mut unknown_words, mut notes) = (vec![], vec![]);
    let filled: Vec<String> = rest.iter().map(|word| without_unset(word, &script.unknowns)).collect();
    for unknown in
        rest.iter().flat_map(|word| unknowns_in(word)).map(|unknown| &script.unknowns[unknown]).filter(|unknown| unknown.is_unset)
    {
        let note = format!("{name}:{}: {}, and is empty, as in bash", unknown.line, unknown.message);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if filled.iter().any(|word| !word.is_empty() && word.trim().is_empty()) {
        notes.push(format!("{name}:{line}: a blank word of the command is left out; verl refuses it. A space after the backslash at the end of a line causes such a word, and ends the command"));
    }
    let mut words = filled.iter().filter(|word| !word.trim().is_empty());
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
                return Err(Problem::new("", format!("`{word}` is not a supported option of {}", program.module))
                    .help("supported are overrides, key=value, and --config-path and --config-name"));
            }
            _ if !unknowns_in(flag).is_empty() => {
                // An unknown word can be any number of overrides.
                unknown_words.extend(unknowns_in(flag).into_iter().map(|unknown| script.unknowns[unknown].clone()));
            }
            _ => overrides.push(replace_unknowns(word, &placeholder)),
        }
    }
    if let Support::Schedule(advice) = program.support {
        notes.push(format!("{name}:{line}: `{}`: {advice}", program.module));
    }
    let mut words = vec![];
    if let Some((base, own)) = extended(&config) {
        words.extend(own.iter().map(|word| word.to_string()));
        config = base.to_string();
    }
    words.append(&mut overrides);
    let counted = batches(program, &words);
    words.extend(counted);
    let overrides = words;
    let further = found.map(|(call, _)| call.line).filter(|other| *other != line).collect();
    Ok(Invocation { program, config, path, overrides, further, unknowns: script.unknowns.clone(), unknown_words, notes })
}

/// Replaces unset variables by empty texts, as bash does.
fn without_unset(word: &str, unknowns: &[Unknown]) -> String {
    replace_unknowns(word, &|unknown| if unknowns[unknown].is_unset { String::new() } else { shell::mark(unknown) })
}

fn convert_for(edition: &'static str, call: &Invocation) -> Result<VerlConversion, ConfigError> {
    let kind = call.program.kind;
    let choice = GroupChoice::new(edition, &call.config, &call.overrides).ok_or_else(|| {
        let known = extended_names().collect::<Vec<_>>().join(", ");
        Problem::new("", format!("`{}` is not a configuration of verl {edition}", call.config))
            .help(format!("known are ppo_trainer, ppo_megatron_trainer, sft_trainer, generation, evaluation, {known}; for your own file, run trainer --config FILE OVERRIDES"))
    })?;
    let GroupChoice { config, framework, tree: mut after, mut given, mut ignored, mut problems, words } = choice?;
    let mut blocked = vec![];
    let defaults = burnish_config::defaults(kind.default_file())?;
    let mut written = vec![];
    let is_unknown_setting = |key: &str| {
        row(kind, key, defaults.root()).is_none() && defaults.value(key).is_none() && !below_open_mapping(key, defaults.root())
    };
    for word in words {
        match overrides::parse(word) {
            Err(problem) => problems.push(problem),
            Ok(one) if one.key == "hydra" || one.key.starts_with("hydra.") => {
                ignored.push(Ignored::hydra(one.key, &one.value.map_or(Value::Null, |node| node.value)));
            }
            Ok(one) => {
                // Scripts for other releases have keys that the edition lacks; accept the keys in the table.
                let is_known = || one.operation != Operation::Delete && row(kind, &one.key, defaults.root()).is_some();
                let value = one.value.as_ref().map_or("null".into(), |node| inline(&node.value));
                let is_new = after.get(&one.key).is_none();
                match one.clone().apply(&mut after) {
                    Err(_) if after.get(&one.key).is_none() && is_known() => {}
                    Err(problem) => {
                        blocked.push(Blocked { key: one.key, value, reason: with_help(&problem) });
                        continue;
                    }
                    // verl accepts any key with `+`.
                    Ok(()) if is_new && is_unknown_setting(&one.key) => {
                        blocked.push(Blocked { key: one.key, value, reason: "there is no such setting".into() });
                        continue;
                    }
                    Ok(()) => {}
                }
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
        reason: "verl's own defaults are used; for your own file, run trainer --config FILE",
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
    let mut converted = VerlConversion {
        kind,
        edition,
        subcommand: call.program.subcommand,
        preset: format!("verl/{edition}/{name}"),
        overrides: written,
        recipe: String::new(),
        renamed: vec![],
        ignored,
        unknown_keys: blocked.len(),
        blocked,
        settings: Node::new(Value::Map(Default::default()), defaults.root().origin.clone()),
        further: call.further.clone(),
        unknowns: call.unknowns.clone(),
        unknown_words: call.unknown_words.clone(),
        notes: call.notes.clone(),
    };
    if let Support::Missing(reason) = call.program.support {
        converted.blocked.push(Blocked { key: String::new(), value: String::new(), reason: reason.into() });
    }
    converted.settings = sort(given, &mut converted, defaults.root())?;
    converted.drop_blocked();
    converted.show_unknowns();
    converted.recipe = recipe::write(&converted);
    Ok(converted)
}

/// Applies the overrides to the built-in defaults like a run. Returns the settings of the recipe, and records the other keys.
fn sort(given: Vec<Override>, converted: &mut VerlConversion, defaults: &Node) -> Result<Node, ConfigError> {
    let verl = VerlAdapter::new(converted.kind, defaults).later_wins();
    let mut root = defaults.clone();
    let mut problems = vec![];
    for one in given {
        // The operation was already checked on verl's own keys.
        let operation = if one.operation == Operation::Delete { one.operation } else { Operation::Force };
        match verl.overriding(Override { operation, ..one }, &root) {
            Ok(adapted) => problems.extend(adapted.into_iter().filter_map(|one| one.apply(&mut root).err())),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let split = remove_unsupported(converted.kind, &root, defaults);
    converted.renamed = verl.renamed().into_iter().chain(split.renamed).filter(|one| !groups::is_from(&one.origin)).collect();
    let refused =
        |key: &str, node: &Node, reason: &str| Blocked { key: key.into(), value: inline(&node.value), reason: reason.into() };
    let mut settings = Node::new(Value::Map(Default::default()), root.origin.clone());
    leaves("", &split.settings, &mut |key, node| {
        if matches!(node.origin, Origin::Override(_)) && row(converted.kind, key, defaults).is_none() {
            // Replaced values stay in the recipe: the run reports them.
            let is_replaced = VALUES.iter().any(|(of, ..)| *of == key);
            settings.put(key, root.get(key).filter(|_| is_replaced).unwrap_or(node).clone());
        }
    });
    let is_refused = |key: &str| split.problems.iter().any(|problem| problem.key == key);
    let mut others = vec![];
    leaves("", &root, &mut |key, node| {
        let Some(row) = row(converted.kind, key, defaults).filter(|_| matches!(node.origin, Origin::Override(_))) else { return };
        match row.treatment {
            KeyTreatment::Refused(reason) if !groups::is_from(&node.origin) && is_refused(key) => {
                converted.blocked.push(refused(key, node, reason));
            }
            KeyTreatment::Ignored(reason) if groups::is_reported(key, &node.origin) => {
                others.push((key.to_string(), node.clone(), reason))
            }
            _ => {}
        }
    });
    // A setting may refer to an ignored key.
    let refers = settings.value.to_yaml().contains("${");
    let is_read = |key: &str| split.copied.contains(&key);
    for (key, node, reason) in others.into_iter().filter(|(key, ..)| !is_read(key)) {
        if refers {
            settings.put(&key, node.clone());
        }
        converted.ignored.push(Ignored { key, value: inline(&node.value), reason });
    }
    Ok(settings)
}

/// Returns the message of a problem with its help.
fn with_help(problem: &Problem) -> String {
    problem.help.as_ref().map_or(problem.message.clone(), |help| format!("{}; {help}", problem.message))
}
