//! `trainer runs rm`: deletes the files that runs wrote, and no others.

use std::fs;
use std::io::{BufRead, IsTerminal, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;

use super::super::error::CliError;
use super::super::print::print;
use burnish_checkpoint::{BEST_FILE, KEPT_FILE, TRACKER_FILE, step_of};
use burnish_report::disk::{bytes_of, size};
use burnish_report::folder::is_run;
use burnish_run::{CONSOLE, INFO, LOG, METRICS, PHASE, SAMPLES};
use burnish_util::excerpt::{cell, first_items};
use burnish_util::lock::{FolderLock, lock};
use burnish_util::terminal;

#[derive(Args)]
pub(crate) struct RmArgs {
    /// Folders of the runs
    #[arg(value_name = "RUN_DIR", required = true)]
    runs: Vec<PathBuf>,
    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

/// Files and folders that a run writes into its folder, besides checkpoints; a `*` stands for any further characters.
const WRITTEN: &[&str] = &[
    INFO,
    METRICS,
    SAMPLES,
    PHASE,
    LOG,
    TRACKER_FILE,
    BEST_FILE,
    KEPT_FILE,
    "trainer.rank*.log",
    "recipe.yaml",
    CONSOLE,
    "report.html",
    "wandb",
    "tensorboard",
    "earlier-*",
];

/// A run to delete.
struct DeletedRun {
    dir: PathBuf,
    files: Vec<PathBuf>,
    /// Entries of the folder that the run did not write.
    foreign: Vec<String>,
    bytes: u64,
    /// Holds the lock of the folder, so that no run begins in it.
    _lock: Option<FolderLock>,
}

pub(super) fn run(args: &RmArgs) -> Result<(), CliError> {
    let doomed: Vec<DeletedRun> =
        args.runs.iter().map(|dir| DeletedRun::find(dir)).collect::<Result<_>>().map_err(CliError::setup)?;
    let lines: String = doomed.iter().map(|run| format!("{}  {}\n", run.dir.display(), size(run.bytes))).collect();
    if !args.yes {
        ensure_confirmed(&lines)?;
    }
    for run in doomed {
        print(&run.delete().map_err(CliError::run)?)?;
    }
    Ok(())
}

/// Asks on the terminal.
fn ensure_confirmed(lines: &str) -> Result<(), CliError> {
    if !stdin().is_terminal() {
        return Err(CliError::setup(anyhow!("these runs would be deleted; --yes deletes them:\n{}", lines.trim_end())));
    }
    terminal::say(&format!("{lines}Delete these runs with their checkpoints? [y/N] "));
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer).context("no answer").map_err(CliError::run)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::setup(anyhow!("nothing is deleted"))),
    }
}

impl DeletedRun {
    /// Refuses what is not the folder of a run that has ended.
    fn find(dir: &Path) -> Result<Self> {
        let kind = fs::symlink_metadata(dir).with_context(|| format!("{}", dir.display()))?;
        ensure!(!kind.is_symlink(), "{} is a link: name the folder itself", dir.display());
        if step_of(dir).is_ok() || !is_run(dir) {
            bail!("{} is not the folder of a run; `trainer runs ls` lists runs", dir.display());
        }
        let lock = lock(dir).with_context(|| format!("{} is not deleted", dir.display()))?;
        let (mut files, mut foreign) = (vec![], vec![]);
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match step_of(&path).is_ok() || is_written(&name) {
                true => files.push(path),
                false if name != ".lock" => foreign.push(name),
                false => {}
            }
        }
        let bytes = files.iter().map(|file| bytes_of(file)).sum();
        foreign.sort();
        Ok(Self { dir: dir.to_owned(), files, foreign, bytes, _lock: lock })
    }

    /// Deletes the files; the record goes last, so that an interrupted deletion leaves a run. Returns the line to print.
    fn delete(mut self) -> Result<String> {
        self.files.sort_by_key(|path| path.file_name().is_some_and(|name| name == INFO || name == METRICS));
        for path in &self.files {
            let is_folder = fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir());
            let deleted = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            deleted.with_context(|| format!("cannot delete {}", path.display()))?;
        }
        let (dir, freed) = (self.dir.display(), size(self.bytes));
        if !self.foreign.is_empty() {
            let foreign = first_items(self.foreign, |left| format!("… and {left} more")).join(", ");
            let foreign = cell(&foreign);
            return Ok(format!("{dir}: {freed} deleted; left, as the run did not write it: {foreign}\n"));
        }
        fs::remove_file(self.dir.join(".lock")).or_else(missing)?;
        fs::remove_dir(&self.dir).with_context(|| format!("cannot delete {dir}"))?;
        Ok(format!("{dir}: {freed} deleted\n"))
    }
}

fn missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn is_written(name: &str) -> bool {
    WRITTEN.iter().any(|known| match known.split_once('*') {
        Some((begin, end)) => name.starts_with(begin) && name.ends_with(end),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_run::{RunInfo, RunState};

    #[test]
    fn only_files_of_runs_that_ended_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let begin = |name: &str| {
            fs::create_dir_all(at(name).join("global_step_2/actor")).unwrap();
            RunInfo { state: RunState::Finished, ..RunInfo::new("ppo", "p", "e") }.write(&at(name)).unwrap();
            fs::write(at(name).join("global_step_2/actor/x"), "12345").unwrap();
        };
        ["whole", "mixed", "runs"].into_iter().for_each(begin);
        fs::write(at("mixed/thesis.tex"), "mine").unwrap();
        fs::create_dir(at("plain")).unwrap();
        std::os::unix::fs::symlink("whole", at("link")).unwrap();
        for (name, part) in [
            ("plain", "is not the folder of a run"),
            ("none", "No such file"),
            ("link", "is a link"),
            ("whole/global_step_2", "is not the folder of a run"),
        ] {
            let error = DeletedRun::find(&at(name)).err().map(|error| format!("{error:#}")).unwrap();
            assert!(error.contains(part), "{name}: {error}");
        }
        // If one run is refused, no run is deleted.
        let args = |names: &[&str]| RmArgs { runs: names.iter().map(|name| at(name)).collect(), yes: true };
        let held = lock(&at("runs")).unwrap();
        assert!(run(&args(&["whole", "runs"])).is_err() && at("whole/run.json").is_file());
        drop(held);
        assert!(run(&args(&["whole", "mixed"])).is_ok());
        assert!(!at("whole").exists() && at("mixed/thesis.tex").is_file() && !at("mixed/global_step_2").exists());
    }
}
