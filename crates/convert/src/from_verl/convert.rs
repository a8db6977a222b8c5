//! The conversion of a command of verl.

use super::converted::{Blocked, MEANT, VerlConversion, VerlSource, without_placeholders};
use super::groups::{self, GroupChoice};
use super::invocation::{Invocation, invocation};
use super::programs::Support;
use super::recipe;
use burnish_config::compat::editions::{self, EDITIONS};
use burnish_config::compat::table::VALUES;
use burnish_config::compat::{
    Ignored, KeyTreatment, Kind, VerlAdapter, below_open_mapping, files, inline, leaves, remove_unsupported, row,
};
use burnish_hydra::overrides::{self, Operation, Override};
use burnish_hydra::{Adapt, ConfigError, Node, Origin, Problem, Value};

/// Converts the first command of verl in a text.
///
/// # Errors
/// If the text has no command of verl, or verl would refuse the command.
pub fn convert(source: &VerlSource) -> Result<VerlConversion, ConfigError> {
    let mut invocation = invocation(source)?;
    let editions: Vec<&'static str> = match source.edition {
        Some(requested) => {
            let (edition, release) = editions::find(requested).ok_or_else(|| {
                let message = format!("`{requested}` is not a known edition of verl");
                Problem::new("", message).help(format!("known are {} and the releases 0.3 to 0.9", EDITIONS.join(", ")))
            })?;
            release.iter().for_each(|release| of_release(&mut invocation, edition, release));
            vec![edition]
        }
        // Exclude editions that lack a group or option of the command that the newest edition has.
        None => EDITIONS[1..].iter().copied().filter(|edition| has_groups(edition, &invocation.overrides)).collect(),
    };
    let mut attempts: Vec<_> = editions.into_iter().map(|edition| convert_for(edition, &invocation)).collect();
    // Choose the edition with the fewest unknown keys, the older one of two.
    let unknown = |attempt: &Result<VerlConversion, _>| attempt.as_ref().map_or(usize::MAX, |converted| converted.unknown_keys);
    let best = (0..attempts.len()).min_by_key(|index| unknown(&attempts[*index]));
    attempts.swap_remove(best.unwrap_or(0))
}

/// Adds the defaults of a release that its edition does not have.
fn of_release(call: &mut Invocation, edition: &str, release: &str) {
    let mut differing = vec![];
    for (_, key, value) in editions::RELEASE_DEFAULTS.iter().filter(|(of, ..)| *of == release && call.program.kind == Kind::Rl) {
        // Overrides of the command come later and win.
        call.overrides.insert(0, format!("{key}={value}"));
        differing.push(format!("{key}={value}"));
    }
    let except = if differing.is_empty() { String::new() } else { format!(", with its {}", differing.join(", ")) };
    call.notes.push(format!("verl {release}: the defaults are those of the nearest edition, {edition}{except}"));
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

fn convert_for(edition: &'static str, call: &Invocation) -> Result<VerlConversion, ConfigError> {
    let kind = call.program.kind;
    let mut blocked = call.blocked.clone();
    // verl's own file replaces a file that is not verl's.
    let is_known = files::find(edition, &call.config).is_some();
    let file = if is_known { &call.config } else { call.program.config_like(&call.config) };
    if !is_known {
        let value = without_placeholders(&call.config);
        let reason = format!("this file is not verl's, and is not read: the recipe has the defaults of verl's {file}");
        blocked.push(Blocked { key: "--config-name".into(), value, reason });
    }
    let (overrides, foreign): (Vec<String>, Vec<String>) =
        call.overrides.iter().cloned().partition(|word| call.script.is_none() || !groups::is_foreign(edition, word));
    blocked.extend(foreign.iter().map(|word| call.not_read(word)));
    let choice = GroupChoice::new(edition, file, &overrides)
        .ok_or_else(|| Problem::new("", format!("`{file}` is not a configuration of verl {edition}")))?;
    let GroupChoice { config, framework, tree: mut after, mut overrides, mut ignored, mut problems, words } = choice?;
    let mut notes = call.notes.clone();
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
            Ok(mut one) => {
                let mut word = word.clone();
                if is_never(call, &one) {
                    notes.push(format!("{word}: verl tests for a number above 0, so this is never: {}=-1", one.key));
                    word = format!("{}=-1", one.key);
                    one = overrides::parse(&word)?;
                }
                // Scripts for other releases add keys that the edition has.
                if one.operation == Operation::Add
                    && after.get(&one.key).is_some()
                    && one.clone().apply(&mut after.clone()).is_err()
                {
                    notes.push(format!("{word}: verl {edition} has this key, so the `+` is left out"));
                    word = word.trim_start_matches('+').to_string();
                    one.operation = Operation::Force;
                }
                // Scripts for other releases have keys that the edition lacks; accept the keys in the table.
                let is_known = || one.operation != Operation::Delete && row(kind, &one.key, defaults.root()).is_some();
                let value = one.value.as_ref().map_or("null".into(), |node| inline(&node.value));
                let is_new = after.get(&one.key).is_none();
                match one.clone().apply(&mut after) {
                    Err(_) if after.get(&one.key).is_none() && is_known() => {}
                    Err(problem) => {
                        blocked.push(Blocked { key: one.key, value, reason: call.reason(with_help(&problem)) });
                        continue;
                    }
                    // verl accepts any key with `+`.
                    Ok(()) if is_new && is_unknown_setting(&one.key) => {
                        let reason = call.reason("there is no such setting".into());
                        blocked.push(Blocked { key: one.key, value, reason });
                        continue;
                    }
                    Ok(()) => {}
                }
                if editions::unread(edition, &config, framework, &one.key).is_none() {
                    written.push(word);
                }
                overrides.push(one);
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
    overrides.retain(|one| {
        let reason = editions::unread(edition, &config, framework, &one.key);
        let value = || one.value.as_ref().map_or("null".into(), |node| inline(&node.value));
        ignored.extend(reason.filter(|_| !groups::is_from(&one.origin)).map(|reason| Ignored {
            key: one.key.clone(),
            value: value(),
            reason,
        }));
        reason.is_none()
    });
    let of_groups = overrides.iter().filter(|one| groups::is_from(&one.origin)).filter_map(|one| {
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
        notes,
    };
    if let Support::Missing(reason) = call.program.support {
        converted.blocked.push(Blocked { key: String::new(), value: String::new(), reason: reason.into() });
    }
    converted.settings = sort(overrides, &mut converted, defaults.root())?;
    converted.drop_blocked();
    converted.drop_advice();
    converted.show_unknowns();
    converted.recipe = recipe::write(&converted);
    Ok(converted)
}

/// Applies the overrides to the built-in defaults like a run. Returns the settings of the recipe, and records the other keys.
fn sort(overrides: Vec<Override>, converted: &mut VerlConversion, defaults: &Node) -> Result<Node, ConfigError> {
    let verl = VerlAdapter::new(converted.kind, defaults).later_wins();
    let mut root = defaults.clone();
    let mut problems = vec![];
    for one in overrides {
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

/// Returns true for a number of steps that means `never` in verl but not here.
fn is_never(call: &Invocation, one: &Override) -> bool {
    let is_zero = one.value.as_ref().is_some_and(|node| node.value == Value::Int(0));
    call.program.kind == Kind::Rl && ["trainer.save_freq", "trainer.test_freq"].contains(&one.key.as_str()) && is_zero
}

/// Returns the message of a problem, with the most similar key. verl's `+` would not help: the key has no effect here.
fn with_help(problem: &Problem) -> String {
    let help = problem.help.as_ref().filter(|help| help.starts_with(MEANT));
    help.map_or(problem.message.clone(), |help| format!("{}; {help}", problem.message))
}
