//! `trainer report` of a sweep: one page, and its numbers as files for other programs.

use std::path::Path;

use anyhow::Context;

use super::error::CliError;
use super::print::print;
use super::report::{ReportArgs, write_page};
use burnish_data::{check_writes_rows, write_rows};
use burnish_report::sweep::{Sweep, page};

pub(super) fn run(args: &ReportArgs, folder: &Path) -> Result<(), CliError> {
    let flags = [("--watch", args.watch), ("--markdown", args.markdown)];
    if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
        return Err(CliError::Setup(format!(
            "{flag} is for runs, and {} is a sweep: name the folders of its jobs",
            folder.display()
        )));
    }
    for (flag, file) in [("--table", &args.table), ("--rows", &args.rows)] {
        file.iter().try_for_each(|file| check_writes_rows(file).context(flag)).map_err(CliError::setup)?;
    }
    let sweep = Sweep::read(folder).map_err(CliError::setup)?;
    print(&sweep.text())?;
    let files = [(&args.table, Sweep::table as fn(&Sweep) -> _), (&args.rows, Sweep::rows)];
    for (file, rows) in files.iter().filter_map(|(file, rows)| Some((file.as_ref()?, rows))) {
        write_rows(file, &rows(&sweep)).map_err(CliError::classify)?;
        print(&format!("{}\n", file.display()))?;
    }
    write_page(&page(&sweep), args.output.clone(), &folder.join("report.html"))
}
