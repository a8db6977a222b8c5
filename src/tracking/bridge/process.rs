//! The process of a tracker's package: started, asked line by line, and killed with everything it has started.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

const CODE: &str = include_str!("bridge.py");

pub(super) struct Process {
    name: &'static str,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    log: PathBuf,
    child: Arc<Mutex<Child>>,
}

impl Process {
    /// In a group of its own, so that Ctrl-C ends it no sooner than the program; what it prints goes to the end of `log`.
    pub fn spawn(name: &'static str, python: &str, log: &Path) -> Result<Self> {
        let printed = OpenOptions::new().create(true).append(true).open(log);
        let printed = printed.with_context(|| format!("cannot write to {}", log.display()))?;
        let mut command = Command::new(python);
        command.args(["-u", "-c", CODE]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(printed);
        let child = command.spawn();
        let mut child = child.with_context(|| {
            format!("trainer.logger names {name}, which needs Python: cannot start \"{python}\" (reward.python)")
        })?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else { bail!("a process without pipes") };
        let child = Arc::new(Mutex::new(child));
        Ok(Self { name, requests, replies: BufReader::new(replies), log: log.to_owned(), child })
    }

    /// Sends a line and returns the answer to it.
    ///
    /// # Errors
    /// The process has ended.
    pub fn ask(&mut self, line: &str) -> Result<Value> {
        // That nobody reads it shows in the missing answer.
        let _ = self.requests.write_all(format!("{line}\n").as_bytes());
        let mut answer = String::new();
        let read = self.replies.read_line(&mut answer);
        match serde_json::from_str(&answer) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                let why = read.err().map_or(String::new(), |error| format!(" ({error})"));
                bail!("the Python process of {} has ended{why}; what it printed is in {}", self.name, self.log.display())
            }
        }
    }

    pub fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.child))
    }
}

/// Kills the process and its group when dropped, whatever it is doing.
pub(super) struct Killer(Arc<Mutex<Child>>);

impl Drop for Killer {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else reaps it, so the number of its group is still its own.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
    }
}
