//! `trainer report` of a sweep: one page, and its numbers as files for other programs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::error::CliError;
use super::print::print;
use super::report_page::{refuse_record, write_page};
use burnish_data::{check_writes_rows, write_rows};
use burnish_report::sweep::{Sweep, page};
use burnish_run::SWEEP;
use burnish_util::fs::refuse_input;

#[derive(Args)]
pub(super) struct SweepFilesArgs {
    /// For a sweep: also write a row per combination of values to a .csv, .parquet or .jsonl file
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// For a sweep: also write a row per job and step, with all metrics, to such a file
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
}

impl SweepFilesArgs {
    /// Refuses the flags for runs.
    pub(super) fn refuse(&self) -> Result<(), CliError> {
        match [("--table", &self.table), ("--rows", &self.rows)].into_iter().find(|(_, file)| file.is_some()) {
            Some((flag, _)) => Err(CliError::Setup(format!("{flag} is for the folder of a sweep, which has the file {SWEEP}"))),
            None => Ok(()),
        }
    }
}

pub(super) fn run(folder: &Path, files: &SweepFilesArgs, output: Option<PathBuf>) -> Result<(), CliError> {
    for (flag, file) in [("--table", &files.table), ("--rows", &files.rows)] {
        file.iter().try_for_each(|file| check_writes_rows(file).context(flag)).map_err(CliError::setup)?;
    }
    let sweep = Sweep::read(folder).map_err(CliError::setup)?;
    let outputs = [("--table", &files.table), ("--rows", &files.rows), ("--output", &output)];
    let given: Vec<(&str, &PathBuf)> = outputs.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?))).collect();
    for (i, (flag, file)) in given.iter().enumerate() {
        if let Some((other, _)) = given[..i].iter().find(|(_, other)| other == file) {
            return Err(CliError::Setup(format!("{flag} and {other} name one file: {}", file.display())));
        }
        refuse_record(flag, file, &sweep.job_folders()).map_err(CliError::setup)?;
        refuse_input((flag, file), [("the sweep's", folder.join(SWEEP).as_path())]).map_err(CliError::setup)?;
    }
    print(&sweep.text())?;
    let tables = [(&files.table, Sweep::table as fn(&Sweep) -> _), (&files.rows, Sweep::rows)];
    for (file, rows) in tables.iter().filter_map(|(file, rows)| Some((file.as_ref()?, rows))) {
        write_rows(file, &rows(&sweep)).map_err(CliError::classify)?;
        print(&format!("{}\n", file.display()))?;
    }
    write_page(&page(&sweep), output, &folder.join("report.html"))
}
