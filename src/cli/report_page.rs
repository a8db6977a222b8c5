//! Writes the page of a report.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::error::CliError;
use super::print::print;
use burnish_util::fs::{refuse_input, write_atomic};
use burnish_util::no_follow;
use burnish_util::output::is_file;

/// Writes a page to the named file, or else to the default one.
pub(super) fn write_page(html: &str, output: Option<PathBuf>, default: &Path) -> Result<(), CliError> {
    let by_default = output.is_none();
    let path = output.unwrap_or_else(|| default.to_owned());
    let written = match by_default {
        true => no_follow::write(&path, html.as_bytes()).context("--output FILE writes it elsewhere"),
        false => write_atomic(&path, html.as_bytes()),
    };
    written.map_err(CliError::classify)?;
    // If the page goes to standard output, nothing else may be printed there.
    match is_file(&path) {
        true => print(&format!("{} ({:.1} MB)\n", path.display(), html.len() as f64 / 1e6)),
        false => Ok(()),
    }
}

/// Refuses a file of the runs' records; an earlier page may be replaced.
pub(super) fn refuse_record(flag: &str, output: &Path, dirs: &[PathBuf]) -> anyhow::Result<()> {
    let files = dirs.iter().filter_map(|dir| dir.read_dir().ok()).flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "html");
    let record: Vec<PathBuf> = files.filter(|path| !is_page(path)).collect();
    refuse_input((flag, output), record.iter().map(|file| ("the run's", file.as_path())))
}
