//! The output of user code on both streams: it goes to the log, and its last lines go into error messages.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pipe::read_available;

/// Number of lines kept for messages, and below the length limit of a line.
const TAIL: usize = 20;
const LONGEST_LINE: usize = 400;
/// Number of bytes without a line end that count as a line.
const NO_LINE: usize = 1 << 16;
/// Largest number of bytes read at once, so that the caller can check its time limit while a process prints endlessly.
const PRINTED_AT_ONCE: usize = 1 << 18;

/// The pipe that receives both output streams of a process.
pub struct Printed {
    pipe: Option<File>,
    file: String,
    partial: Vec<u8>,
    tail: VecDeque<String>,
    /// Number of lines so far.
    lines: usize,
}

impl Printed {
    /// Wraps a non-blocking pipe. `file` is the term for a user's file in messages.
    pub fn new(pipe: impl Into<OwnedFd>, file: impl Into<String>) -> Self {
        Self { pipe: Some(File::from(pipe.into())), file: file.into(), partial: Vec::new(), tail: VecDeque::new(), lines: 0 }
    }

    /// Returns true until all writers have closed the pipe.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits at most this long for the process to print, or for an event of `others`. Logs the output, and returns the events
    /// of each of `others`; `None` if the time is over.
    pub fn wait(&mut self, others: &[(BorrowedFd<'_>, PollFlags)], at_most: Duration) -> Option<Vec<PollFlags>> {
        let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        let mut watched: Vec<PollFd> = others.iter().map(|(file, flags)| PollFd::from_borrowed_fd(*file, *flags)).collect();
        watched.extend(self.pipe.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        if poll(&mut watched, Some(&at_most)) == Ok(0) {
            return None;
        }
        let events = watched.iter().take(others.len()).map(PollFd::revents).collect();
        self.read();
        Some(events)
    }

    /// Logs the available output.
    pub fn read(&mut self) {
        let Some(mut pipe) = self.pipe.take() else { return };
        let mut total = 0;
        let is_open = read_available(&mut pipe, |chunk| {
            total += chunk.len();
            self.partial.extend_from_slice(chunk);
            self.split();
            total < PRINTED_AT_ONCE
        });
        self.pipe = is_open.then_some(pipe);
        if self.pipe.is_none() && !self.partial.is_empty() {
            self.partial.push(b'\n');
            self.split();
        }
    }

    fn split(&mut self) {
        while let Some(end) =
            self.partial.iter().position(|byte| *byte == b'\n').or((self.partial.len() > NO_LINE).then_some(NO_LINE))
        {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            let line: String = String::from_utf8_lossy(&line).trim_end().chars().take(LONGEST_LINE).collect();
            tracing::debug!("{} prints: {line}", self.file);
            if self.tail.len() == TAIL {
                self.tail.pop_front();
            }
            self.tail.push_back(line);
            self.lines += 1;
        }
    }

    /// Returns the number of lines since the last call.
    pub(crate) fn take_lines(&mut self) -> usize {
        std::mem::take(&mut self.lines)
    }

    /// Returns the last lines of output, for the end of a message.
    pub fn last_words(&self) -> String {
        let lines: Vec<&str> = self.tail.iter().map(String::as_str).collect();
        if lines.is_empty() { String::new() } else { format!("\nIt printed last:\n  {}", lines.join("\n  ")) }
    }

    /// Returns the lines of user code in the last printed traceback, if any. Skips built-in code, which has no file.
    pub fn trace(&self) -> Option<String> {
        let start = self.tail.iter().rposition(|line| line.starts_with("Stack (most recent"))?;
        let lines = self.tail.range(start + 1..).map(String::as_str);
        Some(lines.filter(|line| !line.contains("\"<string>\"")).collect::<Vec<_>>().join("\n"))
    }
}
