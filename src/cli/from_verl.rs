//! `trainer from-verl`: converts a command or script of verl to a command and a recipe of burnish.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use super::conversion::{ConversionObject, RecipeFile, ScriptSource, check, ignored, warn_of_refusal, with_space};
use super::error::CliError;
use super::print::{print_data, warn_of_keys};
use burnish_config::recipe::numbered;
use burnish_config::{ConfigError, Problem};
use burnish_convert::from_verl::{self, Blocked, VerlConversion, VerlSource};
use burnish_convert::shell::{Unknown, message_of_launches};
use burnish_util::foreign;
use burnish_util::shell::command_line;

/// Prints the recipe on standard output and notes on standard error.
#[derive(Args, Default)]
pub(crate) struct FromVerlArgs {
    /// The command in quotes, such as 'python3 -m verl.trainer.main_ppo data.train_batch_size=64', or @script.sh
    pub(super) command: String,
    /// NAME=VALUE for each variable that the script takes from the environment; after `--`, the arguments of the script
    #[arg(value_name = "NAME=VALUE")]
    pub(super) variables: Vec<String>,
    /// Arguments of the script
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(super) arguments: Vec<String>,
    /// Line of the command, if a script has several [default: the first]
    #[arg(long, value_name = "N")]
    pub(super) line: Option<usize>,
    /// Number of the launch, if the command is launched several times, as in a loop [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) launch: Option<usize>,
    /// Program of verl whose keys the command's own program takes, such as main_ppo [default: seen from its name and keys]
    #[arg(long = "as", value_name = "PROGRAM")]
    pub(super) program: Option<String>,
    #[command(flatten)]
    pub(super) file: RecipeFile,
    /// Edition or release of verl: 2025-06, 2026-01, 2026-08, or 0.3 to 0.9 [default: the first of the last two that fits]
    #[arg(long)]
    pub(super) edition: Option<String>,
}

pub(super) fn run(args: &FromVerlArgs) -> Result<(), CliError> {
    let (name, converted, remaining) = convert(args)?;
    if args.file.is_json() {
        print_data(&format!("{}\n", json!(object(name, &converted, remaining.as_ref()))))?;
    } else {
        args.file
            .deliver(converted.subcommand, &converted.recipe, || format!("# {}\n\n{}", command(&converted), converted.recipe))?;
        warn_of_keys(&converted.renamed, &converted.ignored);
        report(name, &converted);
        warn_of_refusal(remaining.as_ref());
    }
    match converted.blocked.len() {
        0 if remaining.is_none() => Ok(()),
        0 => Err(CliError::run(anyhow!("the recipe is written, but a run of it would end at once"))),
        1 => Err(CliError::run(anyhow!("the recipe is written, with one part of the command commented out"))),
        count => Err(CliError::run(anyhow!("the recipe is written, with {count} parts of the command commented out"))),
    }
}

/// Converts the command that the arguments give, without the settings that a run would refuse. Returns the name of its source, the
/// conversion, and the remaining problems.
///
/// # Errors
/// If there is no command of verl, or verl would refuse the command.
pub(super) fn convert(args: &FromVerlArgs) -> Result<(&str, VerlConversion, Option<ConfigError>), CliError> {
    let (name, text) = match args.command.strip_prefix('@') {
        Some(file) => (file, foreign::read_text(Path::new(file), foreign::SETTINGS).map_err(CliError::setup)?),
        None => ("command", args.command.clone()),
    };
    let is_file = args.command.starts_with('@');
    let (line, launch) = (args.line, args.launch);
    let given = ScriptSource { name, is_file, variables: &args.variables, arguments: &args.arguments, line, launch };
    let (edition, program) = (args.edition.as_deref(), args.program.as_deref());
    let mut converted = given.within(|env| from_verl::convert(&VerlSource { text: &text, edition, program, env }))??;
    let remaining = take_out(&mut converted);
    Ok((name, converted, remaining))
}

fn object<'a>(name: &str, converted: &'a VerlConversion, error: Option<&ConfigError>) -> ConversionObject<'a> {
    let missing = converted.open_keys().into_iter().map(|(key, message)| format!("{key}: {message}"));
    ConversionObject {
        library: "verl",
        edition: converted.edition,
        subcommand: converted.subcommand,
        recipe: &converted.recipe,
        not_supported: converted.blocked.iter().map(Blocked::line).collect(),
        differences: vec![],
        ignored: ignored(&converted.ignored),
        missing: missing.collect(),
        notes: notes(name, converted).into_iter().chain(converted.renamed.iter().map(ToString::to_string)).collect(),
        error: error.map(ToString::to_string),
    }
}

/// Returns the notes about the words of the command.
fn notes(name: &str, converted: &VerlConversion) -> Vec<String> {
    let unknown =
        |hole: &Unknown| format!("{name}:{}: {}: it may add overrides that are not known here", hole.line, hole.message);
    let further = message_of_launches(name, &converted.further);
    converted.notes.iter().cloned().chain(further).chain(converted.unknown_words.iter().map(unknown)).collect()
}

/// Prints what is unknown and not supported. Loading the settings reports the keys that are renamed or ignored.
pub(super) fn report(name: &str, converted: &VerlConversion) {
    for note in notes(name, converted) {
        tracing::warn!("{note}");
    }
    for line in numbered(converted.blocked.iter().map(Blocked::line)) {
        tracing::warn!("not supported: {line}");
    }
}

/// Comments out the settings that a run would refuse. Returns the remaining problems: those without a line of the command, and
/// those that the default of the key has too.
fn take_out(converted: &mut VerlConversion) -> Option<ConfigError> {
    let problems = |converted: &VerlConversion| -> Vec<Problem> {
        let problems = check(converted.kind, &converted.preset, converted.overrides.clone())
            .map_or_else(|error| error.problems, |()| vec![]);
        problems.into_iter().filter(|problem| !converted.has_unknown(&problem.key)).collect()
    };
    let mut kept = vec![];
    loop {
        let present = problems(converted);
        let Some(problem) = present.iter().find(|problem| !kept.contains(&problem.key)) else {
            return (!present.is_empty()).then_some(ConfigError { problems: present });
        };
        let mut without = converted.clone();
        if without.block(problem) && problems(&without).iter().all(|other| other.key != problem.key) {
            *converted = without;
        } else {
            kept.push(problem.key.clone());
        }
    }
}

/// Returns the converted configuration as one command line, with the original overrides.
fn command(converted: &VerlConversion) -> String {
    let subcommand = with_space(converted.subcommand);
    format!("trainer {subcommand}--config {} {}", converted.preset, command_line(&converted.words()))
}
