//! The commands below `trainer runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::row::RunRow;
use super::{delete, diff, ls, samples};
use burnish_report::folder::resolve;
use burnish_report::show::show;

#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs with their state, score, size and the settings in which they differ, the newest first
    Ls(ls::LsArgs),
    /// Print all details of a run
    Show(RunsShowArgs),
    /// Compare the settings and the results of two runs
    Diff(diff::RunsDiffArgs),
    /// Show when each prompt was seen, and the scores and advantages of its responses
    Samples(samples::RunsSamplesArgs),
    /// Delete runs with their checkpoints
    Rm(delete::RmArgs),
}

#[derive(Args)]
pub(crate) struct RunsShowArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) fn run(command: RunsCommand) -> Result<(), CliError> {
    match command {
        RunsCommand::Ls(args) => ls::run(&args),
        RunsCommand::Show(args) => {
            let dir = resolve(&args.run).map_err(CliError::setup)?;
            if args.json.json { print_rows([RunRow::read(&dir).full_object()]) } else { print(&show(&dir)) }
        }
        RunsCommand::Diff(args) => diff::run(&args),
        RunsCommand::Samples(args) => samples::run(&args),
        RunsCommand::Rm(args) => delete::run(&args),
    }
}
