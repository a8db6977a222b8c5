//! The conversion of a command of another library.

use super::account::account;
use super::argparse::{self, ParsedOptions};
use super::call::TrainerCall;
use super::choose::{self, ChosenCall, CommandText};
use super::converted::{PeerConversion, RefusedOption};
use super::draft::Draft;
use super::peer::Peer;
use super::trainer::PeerTrainer;
use super::values::OptionValues;
use super::{edition, names, recipe, rows};
use crate::shell::Unknown;
use burnish_hydra::{self, ConfigError, Problem, Value, yaml};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Access to files of this machine.
pub struct FileAccess<'a> {
    /// Reads a file that a command names.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// Lists the files of a folder. For a file the list has only that file; a missing path is `None`.
    pub files: &'a dyn Fn(&str) -> Option<Vec<String>>,
}

/// A command to convert.
pub struct PeerSource<'a> {
    /// Name of the text in messages: the path of the script, or `command`.
    pub name: &'a str,
    /// Programs that the text starts, with their lines and words.
    pub calls: Vec<(usize, Vec<String>)>,
    /// Unknowns in the words.
    pub unknowns: Vec<Unknown>,
    /// Path of a YAML file of options that replaces the text.
    pub options: Option<&'a str>,
    pub edition: Option<&'a str>,
    /// Stage, if the words do not name it.
    pub stage: Option<&'a str>,
    /// Number of processes, if the words do not contain it.
    pub processes: Option<usize>,
    pub access: FileAccess<'a>,
}

/// Converts the first command of a library in a text.
///
/// # Errors
/// If no command is found, its stage is not supported, or the library would refuse the command.
pub fn convert(peer: &'static Peer, source: &PeerSource) -> Result<PeerConversion, ConfigError> {
    let calls = source.calls.iter();
    let mut found: Vec<_> = calls.filter_map(|(line, words)| Some((*line, words.as_slice(), (peer.find)(words)?))).collect();
    // A script may serve a model before it trains another.
    let text = CommandText { name: source.name, stage: source.stage, read: source.access.read };
    let first = choose::choose(peer, text, &mut found)?;
    let of_file = || ChosenCall { words: &[], call: TrainerCall { stage: String::new(), rest: 0, script: None }, program: None };
    let Some(ChosenCall { words, call, program }) = first.or_else(|| source.options.map(|_| of_file())) else {
        let message = format!("{}: there is no command of {}", source.name, peer.name);
        return Err(Problem::new("", message).help(format!("write a command such as {}", peer.example)).into());
    };
    let launch = (peer.launch)(&call, words);
    let rest_words = words.iter().enumerate().skip(call.rest).filter(|(index, _)| !launch.words.contains(index));
    let mut rest: Vec<String> = rest_words.map(|(_, word)| word.clone()).collect();
    if let Some(program) = &program {
        rest.clone_from(&program.words);
    }
    let file = source.options.map(str::to_string).or_else(|| program.as_ref()?.options_file.clone());
    let file = file.or_else(|| config_file(&mut rest));
    let root = file.as_deref().map(|path| parse(path, source)).transpose()?;
    let stage = program.as_ref().map_or(&call.stage, |program| &program.stage);
    let trainer = trainer(peer, source.stage.unwrap_or(stage))?;
    let options = (peer.options)();
    let mut names = argparse::names(&rest);
    if let Some(Value::Map(entries)) = root.as_ref().map(|root| &root.value) {
        names.extend(entries.keys().map(String::as_str));
    }
    if call.script.is_some() || words.is_empty() {
        names.retain(|name| !peer.script_options.contains(name));
    }
    names.extend(program.iter().flat_map(|program| &program.options).map(|option| option.name.as_str()));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let edition = edition::choose(peer, trainer, source.edition, &names)?;
    let of_program = program.as_ref().map(|program| choose::values(program, options, trainer.name)).unwrap_or_default();
    let mut notes: Vec<String> = of_program.notes;
    let mut parsed = ParsedOptions { values: of_program.defaults, ..ParsedOptions::default() };
    if let Some(root) = &root {
        let of_file = argparse::read_file(options, trainer.name, root)?;
        parsed.values.extend(of_file.values);
        parsed.unknown_options = of_file.unknown_options;
        notes.extend(environment(&mut parsed));
    }
    let of_words = argparse::read(options, trainer.name, edition.index, &rest, &source.unknowns)?;
    parsed.values.extend(of_words.values);
    parsed.values.extend(of_program.set_options);
    parsed.unknown_options.extend(of_words.unknown_options);
    parsed.unknown_options.retain(|(_, name)| !program.as_ref().is_some_and(|program| program.has_option(name)));
    let refused = parsed.unknown_options.iter().map(|(written, name)| RefusedOption {
        option: written.clone(),
        reason: match &call.script {
            // A user's script can define additional options.
            Some(script) => format!("{} does not have this option; {script} itself may read it", peer.name),
            None => names::unknown_option(options, trainer.name, name, peer.name),
        },
    });
    let unread = call.script.as_ref().filter(|_| program.is_none() && peer.program.is_some()).map(|script| RefusedOption {
        option: script.clone(),
        reason: "the program cannot be read here: only the options of the command are converted".into(),
    });
    let refused: Vec<RefusedOption> = of_program.refused.into_iter().chain(unread).chain(refused).collect();
    for (option, unknown) in &of_words.unknown_values {
        let option = option.map_or("further options".into(), |name| format!("--{name}"));
        notes.push(format!("{option} of line {} is unknown and left out: {}", unknown.line, unknown.message));
    }
    if launch.processes.or(source.processes).is_none() && launch.is_launched {
        notes.push("the number of processes is unknown, and 1 is assumed: set it with --processes N".into());
    }
    let defaults = burnish_config::defaults(trainer.kind.default_file())?;
    let processes = source.processes.or(launch.processes).unwrap_or(1).max(1);
    let derived = |values: OptionValues| {
        let mut draft = Draft {
            values,
            trainer,
            call: &call,
            processes,
            defaults: defaults.root(),
            files: source.access.files,
            settings: IndexMap::new(),
            refused: refused.clone(),
            differences: vec![],
            notes: notes.clone(),
            missing: vec![],
            program: program.clone(),
            unknown: of_program.unknown.clone(),
        };
        let ignored = rows::apply(peer, &mut draft);
        (peer.derive)(&mut draft);
        for (key, value, why) in program.iter().flat_map(|program| program.settings.clone()) {
            draft.set_because(&key, value, why);
        }
        (draft, ignored)
    };
    let (mut draft, mut ignored) = derived(OptionValues::new(options, trainer.name, edition.index, parsed.values));
    account(peer, &mut draft, &mut ignored, |values| derived(values).0);
    // Last, because an option named in this note does not count as accounted for.
    draft.notes.splice(0..0, edition.mixture);
    let mut converted = PeerConversion {
        trainer: trainer.name,
        kind: trainer.kind,
        edition: options.release(edition.index),
        why: edition.why,
        subcommand: trainer.subcommand,
        preset: trainer.kind.default_file(),
        overrides: recipe::overrides(&draft),
        recipe: String::new(),
        ignored,
        refused: draft.refused.clone(),
        differences: draft.differences.clone(),
        notes: draft.notes.clone(),
        missing: draft.missing.clone(),
    };
    converted.recipe = recipe::write(peer, &converted, &draft);
    Ok(converted)
}

/// Removes TRL's key `env` from the unknown options, and returns a note about its variables.
fn environment(parsed: &mut ParsedOptions) -> Option<String> {
    let at = parsed.unknown_options.iter().position(|(_, name)| name == "env")?;
    parsed.unknown_options.remove(at);
    Some("env: TRL sets these environment variables; set them for the run".into())
}

/// Removes `--config FILE` from the words, and returns the path.
fn config_file(words: &mut Vec<String>) -> Option<String> {
    let at = words.iter().position(|word| word == "--config" || word.starts_with("--config="))?;
    let word = words.remove(at);
    match word.split_once('=') {
        Some((_, path)) => Some(path.to_string()),
        None if at < words.len() => Some(words.remove(at)),
        None => None,
    }
}

fn parse(path: &str, source: &PeerSource) -> Result<burnish_hydra::Node, Problem> {
    let text = (source.access.read)(path).map_err(|error| Problem::new("", error))?;
    yaml::parse(&Arc::new(burnish_hydra::YamlSource { name: path.to_string(), text }))
}

fn trainer(peer: &'static Peer, stage: &str) -> Result<&'static PeerTrainer, Problem> {
    let known = || peer.trainers.iter().map(|trainer| trainer.name).collect::<Vec<_>>().join(", ");
    if let Some(trainer) = peer.trainer(stage) {
        return Ok(trainer);
    }
    let absent = peer.absent.iter().find(|(names, _)| names.split(' ').any(|name| name == stage));
    Err(match (stage, absent) {
        ("", _) => {
            Problem::new("", "the command does not name its trainer").help(format!("name it with --algo, one of {}", known()))
        }
        (_, Some((_, instead))) => Problem::new("", format!("{} `{stage}` is not supported: {instead}", peer.name))
            .help(format!("supported are {}", known())),
        _ => {
            Problem::new("", format!("{} `{stage}` is not a known trainer", peer.name)).help(format!("supported are {}", known()))
        }
    })
}
