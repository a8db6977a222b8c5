//! What the commands that convert a command line of another library have in common.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

use super::failure::Failure;
use super::kinds::choices;
use super::print::{print, print_data, warn_of_keys};
use crate::config::kinds::KINDS;
use crate::config::peers::{self, Converted, Peer, Source};
use crate::config::shell::{self, Surroundings, replace_holes};
use crate::config::{ConfigError, Request};
use crate::util::foreign;
use crate::util::fs::write_atomic;
use crate::util::shell::word;
use crate::util::time::unix_time;

/// Prints the recipe on standard output and what is to be known about it on standard error. Exit code 1 if the command asks for
/// something that is not here.
#[derive(Args)]
pub struct FromPeerArgs {
    /// The command in quotes, @script.sh, or @options.yaml
    command: Option<String>,
    /// The words of the command, in place of the quoted one
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
    /// Write the recipe to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Edition of the library whose defaults count [default: the newest that has all options of the command]
    #[arg(long)]
    edition: Option<String>,
    /// The trainer, where the command does not say which it is
    #[arg(long, value_name = "NAME")]
    algo: Option<String>,
    /// Number of processes that the command starts, one for each device, where it does not say so itself
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
}

/// Converts and prints.
pub fn run(peer: &'static Peer, args: &FromPeerArgs) -> Result<(), Failure> {
    let (name, calls, options) = match (&args.command, args.words.is_empty()) {
        (None, true) => {
            return Err(Failure::setup(anyhow!("there is no command to convert; one is written as {}", peer.example)));
        }
        (None, false) => ("command", vec![(1, args.words.clone())], None),
        (Some(command), _) => match command.strip_prefix('@') {
            Some(file) if file.ends_with(".yaml") || file.ends_with(".yml") => (file, vec![], Some(file)),
            Some(file) => (file, calls(file, &read(file).map_err(|error| Failure::setup(anyhow!(error)))?)?, None),
            None => ("command", calls("command", command)?, None),
        },
    };
    let source = Source {
        name,
        calls,
        options,
        edition: args.edition.as_deref(),
        stage: args.algo.as_deref(),
        processes: args.processes,
        around: peers::Surroundings { read: &read, files: &files },
    };
    let converted = peers::convert(peer, &source)?;
    let subcommand = if converted.subcommand.is_empty() { String::new() } else { format!("{} ", converted.subcommand) };
    match &args.output {
        Some(path) if path.is_file() || path.is_dir() => {
            return Err(Failure::setup(anyhow!("{} exists already", path.display())));
        }
        Some(path) => {
            write_atomic(path, converted.recipe.as_bytes()).map_err(Failure::run)?;
            print(&format!("trainer {subcommand}--config {}\n", word(path)))?;
        }
        None => print_data(&converted.recipe)?,
    }
    report(name, &converted);
    if converted.refused.is_empty() { Ok(()) } else { Err(Failure::Different) }
}

/// Says what is lost and what is still to be set.
fn report(name: &str, converted: &Converted) {
    warn_of_keys(&[], &converted.ignored);
    for (index, refused) in converted.refused.iter().enumerate() {
        tracing::warn!("not here, {}. {}: {}", index + 1, refused.option, refused.reason);
    }
    converted.notes.iter().for_each(|note| tracing::warn!("{note}"));
    converted.holes.iter().for_each(|hole| tracing::warn!("set `{}`: {}", hole.key, hole.message));
    for line in &converted.further {
        tracing::warn!("{name}:{line} is another command; only the first is converted");
    }
    if let Err(error) = check(converted) {
        tracing::warn!("a run with these settings would end at once with this error: {error}");
    }
}

/// Loads the converted settings as a run does.
fn check(converted: &Converted) -> Result<(), ConfigError> {
    let config = Some(converted.preset.to_string());
    let overrides = converted.overrides.iter().map(|word| format!("++{word}")).collect();
    let request = Request { config, overrides, ..Request::default() };
    let known = KINDS.iter().find(|known| known.kind == converted.kind);
    known.map_or(Ok(()), |known| known.load(&request, &choices(known.kind)).map(drop))
}

/// Reads a script as bash would pass its words; what only a run could tell is `???`, which a run of the recipe asks for.
fn calls(name: &str, text: &str) -> Result<Vec<(usize, Vec<String>)>, Failure> {
    let environment = |variable: &str| std::env::var(variable).ok();
    let folder = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_else(|_| "/".into());
    let sources = Path::new(name).parent().map(|parent| Path::new(&folder).join(parent));
    let around = Surroundings {
        name,
        arguments: &[],
        folder,
        sources: sources.filter(|_| name != "command"),
        environment: &environment,
        stubs: false,
        now: unix_time() as i64,
    };
    let script = shell::read(text, &around).map_err(|error| anyhow!("{name}:{}: {}", error.line, error.message));
    let script = script.context("the command cannot be read").map_err(Failure::setup)?;
    let hole = |index: usize| if script.holes[index].is_unset { String::new() } else { "???".into() };
    let words = |words: &[String]| words.iter().map(|word| replace_holes(word, &hole)).collect();
    Ok(script.calls.iter().map(|call| (call.line, words(&call.words))).collect())
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
