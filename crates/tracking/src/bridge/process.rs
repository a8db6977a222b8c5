//! The process of a tracker's package: started, sent requests line by line, and killed with all of its children.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use burnish_util::{no_follow, platform};

const CODE: &str = include_str!("bridge.py");

pub(super) struct BridgeProcess {
    name: &'static str,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    log: PathBuf,
    child: Arc<Mutex<Child>>,
}

impl BridgeProcess {
    /// Starts the process in a separate process group, so that Ctrl-C does not end it before the trainer. Its output is appended
    /// to `log`.
    pub(super) fn spawn(name: &'static str, python: &str, log: &Path) -> Result<Self> {
        let printed = no_follow::open(log, OpenOptions::new().create(true).append(true))?;
        let mut command = Command::new(python);
        command.args(["-u", "-c", CODE]);
        platform::lead_group(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(printed);
        let child = command.spawn();
        let mut child = child.with_context(|| {
            format!("trainer.logger names {name}, which needs Python: cannot start \"{python}\" (reward.python)")
        })?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else { bail!("a process without pipes") };
        let child = Arc::new(Mutex::new(child));
        Ok(Self { name, requests, replies: BufReader::new(replies), log: log.to_owned(), child })
    }

    /// Sends a line and returns the reply.
    ///
    /// # Errors
    /// If the process has ended.
    pub(super) fn ask(&mut self, line: &str) -> Result<Value> {
        // If the process does not read the request, its reply is missing.
        let _ = self.requests.write_all(format!("{line}\n").as_bytes());
        let mut reply = String::new();
        let read = self.replies.read_line(&mut reply);
        match serde_json::from_str(&reply) {
            Ok(reply) => Ok(reply),
            Err(_) => {
                let why = read.err().map_or(String::new(), |error| format!(" ({error})"));
                bail!("the Python process of {} has ended{why}; its output is in {}", self.name, self.log.display())
            }
        }
    }

    pub(crate) fn killer(&self) -> Killer {
        Killer(Arc::clone(&self.child))
    }
}

/// Kills the process and its group when dropped, even while the process is busy.
pub(super) struct Killer(Arc<Mutex<Child>>);

impl Drop for Killer {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // No other code waits for this child, so its process group id cannot have been reused.
        platform::kill_group(child.id());
        let _ = child.wait();
    }
}
