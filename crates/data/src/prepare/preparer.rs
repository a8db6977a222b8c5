//! The definition of a data set: how to write it, its arguments and its report.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};

use super::published::WITHIN;
use burnish_util::fs::refuse_input;
use burnish_util::suggest::did_you_mean;

/// The arguments of a preparer: folders and `key=value` settings.
#[derive(Clone, Debug)]
pub struct PrepareArgs {
    /// Folders of the published files: the folder of `--input`, or the downloaded folders.
    pub inputs: Vec<PathBuf>,
    pub output: PathBuf,
    pub settings: Vec<(String, String)>,
}

/// The written files, with their numbers of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareReport {
    pub files: Vec<(PathBuf, usize)>,
}

impl PrepareArgs {
    pub(super) fn input(&self) -> Result<&PathBuf> {
        self.inputs.first().context("--input FOLDER is missing (the folder of the published files)")
    }

    /// Returns the path of a file to write in the output folder.
    ///
    /// # Errors
    /// If the file is an input file.
    pub(super) fn target(&self, name: &str) -> Result<PathBuf> {
        let path = self.output.join(name);
        let folders = self.inputs.iter().flat_map(|folder| WITHIN.iter().map(move |within| folder.join(within)));
        let files = folders.filter_map(|folder| folder.read_dir().ok()).flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let files: Vec<PathBuf> = files.collect();
        refuse_input(("--output", &path), files.iter().map(|file| ("the published", file.as_path())))?;
        Ok(path)
    }

    pub(super) fn no_input(&self) -> Result<()> {
        if !self.inputs.is_empty() { Err(anyhow!("this data set is generated; remove --input")) } else { Ok(()) }
    }

    pub(super) fn only_settings(&self, known: &[&str]) -> Result<()> {
        match self.settings.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => bail!("unknown setting \"{key}\": this data set has no settings"),
            Some((key, _)) => {
                let hint = did_you_mean(key, known.iter().copied());
                bail!("unknown setting \"{key}\"; known are {}.{hint}", known.join(", "))
            }
        }
    }

    /// Returns the last value given for `key`, or `default`.
    pub(super) fn setting<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T> {
        match self.settings.iter().rev().find(|(name, _)| name == key) {
            None => Ok(default),
            Some((_, text)) => text.parse().map_err(|_| anyhow!("{key}={text} is not a valid value")),
        }
    }
}

/// One data set: one file of this folder and one line of [`PREPARERS`](super::PREPARERS).
pub struct Preparer {
    pub name: &'static str,
    pub doc: &'static str,
    /// Files that `--input` must have, and the Hub data sets with them; empty for a generated data set.
    pub files: &'static str,
    /// Hub names for downloading the files without `--input`.
    pub hub: &'static [&'static str],
    /// Licence of the written files.
    pub licence: &'static str,
    pub run: fn(&PrepareArgs) -> Result<PrepareReport>,
}
