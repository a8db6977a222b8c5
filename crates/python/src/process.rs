//! A worker process: starts it, sends requests, and kills it with all its children.
//!
//! The calling thread writes the request, reads the reply and the printed output, and checks the time limit. So an idle worker
//! costs nothing, and a reply wakes only the thread that waits for it.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;

use super::message::{Received, WorkerMessage, has_more_values_than};
use super::pipe::{read_available, send_available};
use super::printed::Printed;
use super::words::Words;
use burnish_util::interrupt::Interrupt;
use burnish_util::platform;

/// Interval at which a waiting thread checks for an interrupt, and for a dead worker whose forked child holds the pipe open.
const SLICE: Duration = Duration::from_millis(50);
/// The same interval after the worker has closed its pipe and is about to exit.
const DYING_SLICE: Duration = Duration::from_millis(2);
/// Time for a worker to exit after closing its pipe, or to report where it hangs.
const GRACE: Duration = Duration::from_millis(200);
/// Largest size of a reply's line, which holds the scores of a batch, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Largest number of values in a reply's line: parsed values take many times the memory of their text.
pub const MAX_VALUES: usize = 4_000_000;

/// A running process.
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    /// The pipe of replies; `None` once it is closed.
    replies: Option<ChildStdout>,
    received: Received,
    printed: Printed,
    ended: bool,
}

/// The reason for a missing reply. The worker is dead then.
pub enum WorkerError {
    Died(ExitStatus),
    /// The worker closed the pipe of replies without exiting.
    Closed,
    /// The call took too long. Has the running lines of user code, if the worker could report them.
    TimedOut(String),
    /// The reply has more than [`MAX_BYTES`].
    TooLong,
    /// The reply has more than [`MAX_VALUES`].
    TooManyValues,
    Interrupted(anyhow::Error),
}

impl Worker {
    /// Starts a process in its own process group, with exactly the given environment.
    pub fn spawn(python: &str, code: &str, environment: &[(OsString, OsString)], words: &'static Words) -> Result<Self> {
        let mut command = Command::new(python);
        command.args(["-u", "-c", code]).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        platform::lead_group(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start \"{python}\" ({})", words.python))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(replies), Some(printed)) = pipes else { bail!("a process without pipes") };
        let nonblocking = ioctl_fionbio(&requests, true).and(ioctl_fionbio(&replies, true)).and(ioctl_fionbio(&printed, true));
        let printed = Printed::new(printed, words.file);
        let worker = Self { child, requests, replies: Some(replies), received: Received::default(), printed, ended: false };
        nonblocking.context("cannot use the pipes of a Python process")?;
        Ok(worker)
    }

    /// Sends a message and returns the next one received. `columns` is the largest size of its columns, in bytes.
    pub fn ask(
        &mut self,
        message: &[u8],
        columns: usize,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<WorkerMessage, WorkerError> {
        let started = Instant::now();
        let (mut unsent, mut looked, mut closed) = (message, started, None);
        loop {
            // If the reader is gone, [`Self::is_dead`] finds out.
            unsent = send_available(&mut self.requests, unsent);
            let left = timeout.saturating_sub(started.elapsed());
            self.wait(!unsent.is_empty(), left.min(if closed.is_some() { DYING_SLICE } else { SLICE }));
            self.read_replies(MAX_BYTES + columns);
            if let Some(reply) = self.received.take() {
                if has_more_values_than(&reply.line, MAX_VALUES) {
                    self.end();
                    return Err(WorkerError::TooManyValues);
                }
                return Ok(reply);
            }
            if self.received.len() > MAX_BYTES + columns {
                self.end();
                return Err(WorkerError::TooLong);
            }
            if self.replies.is_none() {
                closed = closed.or(Some(Instant::now()));
            }
            if looked.elapsed() >= SLICE || closed.is_some() {
                looked = Instant::now();
                if self.is_dead() {
                    return Err(WorkerError::Died(self.end()));
                }
            }
            if closed.is_some_and(|closed| closed.elapsed() > GRACE) {
                self.end();
                return Err(WorkerError::Closed);
            }
            if let Err(interrupted) = interrupt.check() {
                self.end();
                return Err(WorkerError::Interrupted(interrupted));
            }
            if started.elapsed() >= timeout {
                let place = self.place();
                self.end();
                return Err(WorkerError::TimedOut(place));
            }
        }
    }

    /// Waits until something can be read or sent. Returns true on a timeout.
    fn wait(&mut self, sending: bool, at_most: Duration) -> bool {
        let replies = self.replies.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
        let requests = sending.then(|| (self.requests.as_fd(), PollFlags::OUT));
        let pipes: Vec<_> = replies.into_iter().chain(requests).collect();
        self.printed.wait(&pipes, at_most).is_none()
    }

    /// Reads the available bytes, up to `max` in total.
    fn read_replies(&mut self, max: usize) {
        let (Some(pipe), received) = (&mut self.replies, &mut self.received) else { return };
        let is_open = read_available(pipe, |chunk| {
            received.push(chunk);
            received.len() <= max
        });
        if !is_open {
            self.replies = None;
        }
    }

    /// Returns true if the process has ended. It is not reaped, so that its process group id cannot be reused.
    pub fn is_dead(&self) -> bool {
        platform::has_ended(self.child.id())
    }

    /// Kills the process and its group, unless done before.
    fn end(&mut self) -> ExitStatus {
        if !self.ended {
            // The process may have ended by itself while its children still run.
            platform::kill_group(self.child.id());
            self.ended = true;
            self.printed.read();
        }
        self.child.wait().unwrap_or_default()
    }

    /// Returns the current position in the user's code, which the worker prints when it receives this signal.
    fn place(&mut self) -> String {
        self.printed.read();
        let started = Instant::now();
        if !platform::ask_for_place(self.child.id()) {
            return String::new();
        }
        while started.elapsed() < GRACE {
            // The worker prints it at once or not at all, so silence after output means that it is complete.
            if self.wait(false, SLICE) && self.printed.trace().is_some() {
                break;
            }
        }
        self.printed.trace().unwrap_or_default()
    }

    /// Returns the number of lines that the process has printed since the last call.
    pub fn take_printed_lines(&mut self) -> usize {
        self.printed.read();
        self.printed.take_lines()
    }

    /// Returns the last lines of output, for the end of a message.
    pub fn last_words(&self) -> String {
        self.printed.last_words()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}
