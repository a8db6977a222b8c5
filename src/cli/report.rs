//! `trainer report`: the curves, samples and settings of runs as one HTML file, or served and updated while the runs last.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::error::CliError;
use super::print::{print, print_data};
use super::report_page::{refuse_record, write_page};
use super::report_sweep::{self, SweepFilesArgs};
use burnish_checkpoint::refuse_inside;
use burnish_report::folder::resolve;
use burnish_report::gather::Gather;
use burnish_report::markdown::markdown;
use burnish_report::page::page;
use burnish_report::watch::Watch;
use burnish_run::SWEEP;
use burnish_util::interrupt::Interrupt;

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Folder of a run (trainer.default_local_dir), a checkpoint or a file in it, or of a sweep; several runs share their charts
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
    /// File to write [default: report.html in RUN_DIR; for several runs, in this folder]
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    output: Option<PathBuf>,
    /// Print a summary in Markdown instead, for a comment on a change
    #[arg(long, conflicts_with_all = ["watch", "output"])]
    markdown: bool,
    /// Serve the page to browsers on this machine, and update it until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    files: SweepFilesArgs,
    /// Port to serve at [default: any free one]
    #[arg(long, requires = "watch")]
    port: Option<u16>,
}

pub(super) fn run(args: &ReportArgs) -> Result<(), CliError> {
    if let Some(output) = &args.output {
        refuse_inside(output).context("--output").map_err(CliError::setup)?;
    }
    if let [folder] = &args.runs[..]
        && folder.join(SWEEP).is_file()
    {
        let flags = [("--watch", args.watch), ("--markdown", args.markdown)];
        if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
            let message = format!("{flag} is for runs, and {} is a sweep: name the folders of its jobs", folder.display());
            return Err(CliError::Setup(message));
        }
        return report_sweep::run(folder, &args.files, args.output.clone());
    }
    args.files.refuse()?;
    let dirs = runs(&args.runs).map_err(CliError::setup)?;
    if let Some(output) = &args.output {
        refuse_record("--output", output, &dirs).map_err(CliError::setup)?;
    }
    if args.markdown {
        return summaries(&dirs);
    }
    if args.watch { watch(dirs, args.port) } else { write(dirs, args.output.clone()) }
}

/// Resolves the folders of the runs, and refuses a run that is named twice.
fn runs(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for path in paths {
        let dir = resolve(path)?;
        let is_same = |other: &PathBuf| other.canonicalize().ok() == dir.canonicalize().ok();
        ensure!(!dirs.iter().any(is_same), "{} is given twice", dir.display());
        dirs.push(dir);
    }
    Ok(dirs)
}

/// Prints the summary of each run.
fn summaries(dirs: &[PathBuf]) -> Result<(), CliError> {
    let texts: Vec<String> = dirs.iter().map(|dir| markdown(dir)).collect::<Result<_>>().map_err(CliError::classify)?;
    print_data(&texts.join("\n"))
}

fn write(dirs: Vec<PathBuf>, output: Option<PathBuf>) -> Result<(), CliError> {
    let default = match &dirs[..] {
        [dir] => dir.join("report.html"),
        _ => PathBuf::from("report.html"),
    };
    let data = Gather::new(dirs).data(false).map_err(CliError::classify)?;
    data.problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    let html = page(&data, false);
    write_page(&html, output, &default)
}

fn watch(dirs: Vec<PathBuf>, port: Option<u16>) -> Result<(), CliError> {
    let interrupt = Interrupt::on_signals().map_err(CliError::run)?;
    let watch = Watch::new(dirs, port).map_err(CliError::setup)?;
    print(&format!("http://{}/ until Ctrl-C\n", watch.address().map_err(CliError::run)?))?;
    watch.run(&interrupt).map_err(CliError::run)
}
