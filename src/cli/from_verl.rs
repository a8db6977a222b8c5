//! `trainer from-verl`: turns a command or script of verl into a command and a recipe of this program.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use super::failure::Failure;
use super::kinds::choices;
use super::print::{print, print_data, warn_of_keys};
use crate::config::from_verl::{self, Converted, Source};
use crate::config::kinds::KINDS;
use crate::config::{ConfigError, Request};
use crate::util::fs::write_atomic;
use crate::util::shell::{command_line, word};

/// Prints the recipe on standard output and what is to be known about it on standard error.
#[derive(Args)]
pub struct FromVerlArgs {
    /// The command in quotes, such as 'python3 -m verl.trainer.main_ppo data.train_batch_size=64', or @script.sh
    command: String,
    /// Write the recipe to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Edition of verl: 2025-06, 2026-01 or 2026-08 [default: the first of the last two that fits]
    #[arg(long)]
    edition: Option<String>,
}

pub fn run(args: &FromVerlArgs) -> Result<(), Failure> {
    let (name, text) = match args.command.strip_prefix('@') {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}")).map_err(Failure::setup)?;
            (file, text)
        }
        None => ("command", args.command.clone()),
    };
    let environment = |variable: &str| std::env::var(variable).ok();
    let source = Source { name, text: &text, edition: args.edition.as_deref(), environment: &environment };
    let converted = from_verl::convert(&source)?;
    let subcommand = if converted.subcommand.is_empty() { String::new() } else { format!("{} ", converted.subcommand) };
    match &args.output {
        Some(path) if path.is_file() || path.is_dir() => {
            return Err(Failure::setup(anyhow!("{} exists already", path.display())));
        }
        Some(path) => {
            write_atomic(path, converted.recipe.as_bytes()).map_err(Failure::run)?;
            print(&format!("trainer {subcommand}--config {}\n", word(path)))?;
        }
        None => print_data(&format!("# {}\n\n{}", command(&converted, &subcommand), converted.recipe))?,
    }
    warn_of_keys(&converted.renamed, &converted.ignored);
    for line in &converted.further {
        tracing::warn!("{name}:{line} is another command of verl; only the first is converted");
    }
    if let Err(error) = check(&converted) {
        tracing::warn!("a run with these settings would end at once with this error: {error}");
    }
    Ok(())
}

/// Loads the converted configuration as a run does.
fn check(converted: &Converted) -> Result<(), ConfigError> {
    let config = Some(converted.preset.clone());
    let request = Request { config, overrides: converted.overrides.clone(), ..Request::default() };
    let known = KINDS.iter().find(|known| known.kind == converted.kind);
    known.map_or(Ok(()), |known| known.load(&request, &choices(known.kind)).map(drop))
}

/// The converted configuration as one command line, with the overrides as they were.
fn command(converted: &Converted, subcommand: &str) -> String {
    format!("trainer {subcommand}--config {} {}", converted.preset, command_line(&converted.overrides))
}
