//! The common part of the commands that convert a command line of TRL or OpenRLHF.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use super::conversion::{ConversionObject, RecipeFile, ScriptSource, check, ignored, warn_of_refusal};
use super::error::CliError;
use super::print::{print_data, warn_of_keys};
use burnish_config::ConfigError;
use burnish_config::recipe::numbered;
use burnish_convert::peers::{self, FileAccess, Peer, PeerConversion, PeerSource, RefusedOption};
use burnish_convert::shell;
use burnish_util::foreign;

/// Prints the recipe on standard output and notes on standard error. Exit code 1 if the command uses an option that burnish does
/// not have.
#[derive(Args, Default)]
pub(crate) struct FromPeerArgs {
    /// The command in quotes, @script.sh, @program.py, or @options.yaml
    pub(super) command: Option<String>,
    /// NAME=VALUE for each variable that a script takes from the environment
    #[arg(value_name = "NAME=VALUE")]
    pub(super) variables: Vec<String>,
    /// The words of the command, instead of the quoted command; with @script.sh or @program.py its arguments
    #[arg(last = true, value_name = "WORD")]
    pub(super) words: Vec<String>,
    /// Line of the command, if a script has several [default: the first]
    #[arg(long, value_name = "N")]
    pub(super) line: Option<usize>,
    /// Number of the launch, if the command is launched several times, as in a loop [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) launch: Option<usize>,
    #[command(flatten)]
    pub(super) file: RecipeFile,
    /// Release of the library whose defaults count, such as 0.17.0 [default: the newest that has most of the command's options]
    #[arg(long)]
    pub(super) edition: Option<String>,
    /// Trainer of the command, if the command does not show it
    #[arg(long, value_name = "NAME")]
    pub(super) algo: Option<String>,
    /// Number of processes that the command starts, one for each device, if the command does not show it
    #[arg(long, value_name = "N")]
    pub(super) processes: Option<usize>,
}

/// Converts and prints.
pub(super) fn run(peer: &'static Peer, args: &FromPeerArgs) -> Result<(), CliError> {
    let (messages, converted) = convert(peer, args)?;
    let error = refusal(&converted);
    if args.file.is_json() {
        let missing = converted.missing.iter().map(|hole| format!("{}: {}", hole.key, hole.message));
        let object = ConversionObject {
            library: peer.name,
            edition: converted.edition,
            subcommand: converted.subcommand,
            recipe: &converted.recipe,
            not_supported: converted.refused.iter().map(RefusedOption::line).collect(),
            differences: converted.differences.clone(),
            ignored: ignored(&converted.ignored),
            missing: missing.collect(),
            notes: messages.iter().chain(&converted.notes).cloned().collect(),
            error: error.as_ref().map(ToString::to_string),
        };
        print_data(&format!("{}\n", json!(object)))?;
    } else {
        args.file.deliver(converted.subcommand, &converted.recipe, || converted.recipe.clone())?;
        report(&messages, &converted);
        warn_of_refusal(error.as_ref());
    }
    let runs = error.is_none();
    match (converted.refused.len(), converted.differences.len()) {
        (0, 0) if runs => Ok(()),
        (0, 0) => Err(CliError::run(anyhow!("the recipe is written, but a run of it would end at once"))),
        (0, _) => Err(CliError::run(anyhow!("the recipe is written, but its run differs from the command's"))),
        (count, _) => Err(CliError::run(anyhow!("the recipe is written, without {count} of the command's options"))),
    }
}

/// Converts the command that the arguments give. Returns the messages about its script with the conversion.
///
/// # Errors
/// If there is no command, or its library would refuse the command.
pub(super) fn convert(peer: &'static Peer, args: &FromPeerArgs) -> Result<(Vec<String>, PeerConversion), CliError> {
    let (name, script, options) = match (&args.command, args.words.is_empty()) {
        (None, true) => {
            return Err(CliError::setup(anyhow!("there is no command to convert; one is written as {}", peer.example)));
        }
        (None, false) => ("command", Script { calls: vec![(1, args.words.clone())], ..Script::default() }, None),
        (Some(command), is_alone) => match command.strip_prefix('@') {
            Some(file) if file.ends_with(".yaml") || file.ends_with(".yml") => (file, Script::default(), Some(file)),
            Some(file) if file.ends_with(".py") => {
                let words = ["python", file].map(String::from).into_iter().chain(args.words.iter().cloned());
                ("command", Script { calls: vec![(1, words.collect())], ..Script::default() }, None)
            }
            Some(file) => {
                let text = read(file).map_err(|error| CliError::setup(anyhow!(error)))?;
                (file, script(peer, args, file, &text)?, None)
            }
            None if is_alone => ("command", script(peer, args, "command", command)?, None),
            None => {
                return Err(CliError::setup(anyhow!("`{command}` and the words after `--` are two commands: give one of them")));
            }
        },
    };
    let source = PeerSource {
        name,
        calls: script.calls,
        unknowns: script.unknowns,
        options,
        edition: args.edition.as_deref(),
        stage: args.algo.as_deref(),
        processes: args.processes,
        access: FileAccess { read: &read, files: &files },
    };
    let converted = peers::convert(peer, &source)?;
    Ok((script.messages, converted))
}

/// Prints the lost options and the settings that are still open.
pub(super) fn report(messages: &[String], converted: &PeerConversion) {
    messages.iter().for_each(|message| tracing::warn!("{message}"));
    warn_of_keys(&[], &converted.ignored);
    for line in numbered(converted.refused.iter().map(RefusedOption::line)) {
        tracing::warn!("not supported: {line}");
    }
    converted.differences.iter().for_each(|difference| tracing::warn!("different here: {difference}"));
    converted.notes.iter().for_each(|note| tracing::warn!("{note}"));
    converted.missing.iter().for_each(|hole| tracing::warn!("set `{}`: {}", hole.key, hole.message));
    tracing::info!("the defaults are those of {}, {}", converted.edition, converted.why);
}

/// Returns the error with which a run with the settings would end at once.
fn refusal(converted: &PeerConversion) -> Option<ConfigError> {
    let overrides = converted.overrides.iter().map(|word| format!("++{word}")).collect();
    check(converted.kind, converted.preset, overrides).err()
}

/// The programs that a script starts, and the parts of their arguments that cannot be known.
#[derive(Default)]
struct Script {
    calls: Vec<(usize, Vec<String>)>,
    unknowns: Vec<shell::Unknown>,
    /// Messages about the script: advice, and launches that are not converted.
    messages: Vec<String>,
}

/// Reads a shell script, or a quoted command.
fn script(peer: &Peer, args: &FromPeerArgs, name: &str, text: &str) -> Result<Script, CliError> {
    let is_file = args.command.as_ref().is_some_and(|command| command.starts_with('@'));
    let given =
        ScriptSource { name, is_file, variables: &args.variables, arguments: &args.words, line: args.line, launch: args.launch };
    let failed = |line: usize, message: &str| CliError::setup(anyhow!("{name}:{line}: {message}"));
    let is_meant = |words: &[String]| (peer.find)(words).is_some_and(|call| peer.trainer(&call.stage).is_some());
    let script = given.within(|env| shell::read(text, &env, &is_meant))?.map_err(|error| failed(error.line, &error.message))?;
    let has_call = script.calls.iter().any(|call| (peer.find)(&call.words).is_some());
    match script.ended.filter(|_| !has_call) {
        Some(line) => Err(failed(line, "the script ends here, before it launches a trainer: give it what it asks for")),
        None => {
            let calls = script.calls.into_iter().map(|call| (call.line, call.words)).collect();
            let messages = script.notes.into_iter().chain(shell::message_of_launches(name, &script.further)).collect();
            Ok(Script { calls, unknowns: script.unknowns, messages })
        }
    }
}

fn read(path: &str) -> Result<String, String> {
    foreign::read_text(Path::new(path), foreign::SETTINGS).map_err(|error| format!("{error:#}"))
}

/// Lists the files of a folder and of its folder `data`, in order.
fn files(path: &str) -> Option<Vec<String>> {
    let root = Path::new(path);
    if root.is_file() {
        return Some(vec![path.to_string()]);
    }
    let mut found = vec![];
    for folder in [root.to_path_buf(), root.join("data")] {
        let entries = std::fs::read_dir(folder).ok().into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|path| path.is_file()).map(|path| path.display().to_string()));
    }
    found.sort();
    (!found.is_empty()).then_some(found)
}
