//! One job: a process of this program with the settings of the job.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::super::exit_codes::{DONE, INTERRUPTED};
use super::super::in_sweep::mark;
use super::plan::PlannedJob;
use burnish_run::{CONSOLE, JobState};
use burnish_util::no_follow;
use burnish_util::platform::process_name;

/// The first exit code of a process that a second signal ended.
const SIGNALLED: i32 = 128;

/// A running job.
pub(super) struct RunningJob {
    pub index: usize,
    pub process: Option<String>,
    pub began: Instant,
    child: Child,
    /// Size of the job's console.log at its start: an earlier process wrote what is before.
    console_start: u64,
    /// Pipe whose end asks the job to stop.
    pipe: Option<ChildStdin>,
}

impl RunningJob {
    /// Starts the process of a job. `threads`: the threads that it computes on, if it may not use all.
    pub(super) fn start(subcommand: &str, job: &PlannedJob, index: usize, folder: &Path, threads: Option<usize>) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let console = no_follow::open(&folder.join(CONSOLE), OpenOptions::new().append(true).create(true))?;
        let console_start = console.metadata()?.len();
        let mut command = Command::new(std::env::current_exe().context("the path of this program is unknown")?);
        command.args([subcommand].iter().filter(|word| !word.is_empty()));
        let given = [("--config", &job.config.config), ("--config-name", &job.config.config_name)];
        given.iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?))).for_each(|(flag, value)| {
            command.arg(flag).arg(value);
        });
        let folders = job.config.config_path.iter().map(|path| ("--config-path", path));
        folders.chain(job.config.config_dir.iter().map(|path| ("--config-dir", path))).for_each(|(flag, path)| {
            command.arg(flag).arg(path);
        });
        command.args(&job.config.overrides);
        if let Some(threads) = threads.filter(|_| std::env::var_os(THREADS).is_none()) {
            command.env(THREADS, threads.to_string());
        }
        mark(&mut command);
        command.stdin(Stdio::piped()).stdout(console.try_clone()?).stderr(console);
        let mut child = command.spawn().context("the process of a job does not start")?;
        let pipe = child.stdin.take();
        Ok(Self { index, process: process_name(child.id()), began: Instant::now(), child, console_start, pipe })
    }

    /// Asks the job to save and to stop.
    pub(super) fn ask_to_stop(&mut self) {
        self.pipe = None;
    }

    /// Returns the state and a description of a job that has ended.
    pub(super) fn ended(&mut self) -> Option<(JobState, String)> {
        match self.child.try_wait() {
            Ok(status) => status.map(|status| state(status, self.pipe.is_none())),
            Err(error) => Some((JobState::Failed, format!("cannot be waited for: {error}"))),
        }
    }

    /// Returns the last message of a failed job.
    pub(super) fn last_error(&self, folder: &Path) -> Option<String> {
        let mut file = File::open(folder.join(CONSOLE)).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(self.console_start.max(size.saturating_sub(LAST_BYTES)))).ok()?;
        let mut bytes = vec![];
        file.take(LAST_BYTES).read_to_end(&mut bytes).ok()?;
        String::from_utf8_lossy(&bytes).lines().rev().find(|line| line.starts_with("error:")).map(str::to_owned)
    }
}

/// Environment variable with rayon's number of threads, on which all arithmetic runs.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Number of bytes at the end of console.log among which an error is searched.
const LAST_BYTES: u64 = 1 << 20;

/// `was_asked`: the job was asked to stop. A signal may then have come before the job watched for signals.
fn state(status: ExitStatus, was_asked: bool) -> (JobState, String) {
    match status.code() {
        None if was_asked => (JobState::Interrupted, "interrupted".to_owned()),
        Some(code) if code == i32::from(DONE) => (JobState::Finished, "finished".to_owned()),
        Some(code) if code == i32::from(INTERRUPTED) || code > SIGNALLED => (JobState::Interrupted, "interrupted".to_owned()),
        Some(code) => (JobState::Failed, format!("failed with exit code {code}")),
        None => (JobState::Failed, format!("killed ({status})")),
    }
}
