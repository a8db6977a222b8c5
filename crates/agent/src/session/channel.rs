//! The connection to the process of one conversation. The calling thread does all the work: it sends the request, reads the reply
//! and the process's output, and checks the time limit.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::socket::SocketClient;
use super::words::WORDS;
use burnish_python::message::has_more_values_than;
use burnish_python::pipe::{CHUNK, read_available, send_available};
use burnish_python::printed::Printed;
use burnish_python::process::{MAX_BYTES, MAX_VALUES};
use burnish_util::interrupt::Interrupt;
use burnish_util::platform;

/// The interval at which a waiting thread checks for an interrupt.
const SLICE: Duration = Duration::from_millis(50);
/// The time that a process has to exit after it closed its connection, or to report where it hangs.
const GRACE: Duration = Duration::from_millis(200);

pub(super) struct Channel {
    pub pid: u32,
    connection: UnixStream,
    is_open: bool,
    /// A descriptor that becomes readable when the process ends (Linux only): a child of the process may keep the connection
    /// open.
    end: Option<OwnedFd>,
    printed: Printed,
    /// The bytes received so far, and how many of them were searched for the end of the first line.
    received: Vec<u8>,
    searched: usize,
}

/// The reason why there is no reply.
pub(super) enum ReplyError {
    /// The process ended or closed its connection.
    Gone,
    /// The call timed out; with the running line of user code, if the process could report it.
    TimedOut(Option<String>),
    /// The reply has more than [`MAX_BYTES`].
    TooLong,
    /// The reply has more than [`MAX_VALUES`].
    TooManyValues,
    Interrupted(anyhow::Error),
}

fn bounded(line: Vec<u8>) -> Result<Vec<u8>, ReplyError> {
    if has_more_values_than(&line, MAX_VALUES) { Err(ReplyError::TooManyValues) } else { Ok(line) }
}

impl Channel {
    pub(super) fn new(pid: u32, client: SocketClient) -> Self {
        let printed = Printed::new(client.printed, WORDS.file);
        let (connection, end) = (client.connection, platform::end_of_process(pid));
        Self { pid, connection, is_open: true, end, printed, received: Vec::new(), searched: 0 }
    }

    /// Sends a line, unless it is empty, and returns the next line received. `left` returns the remaining time.
    pub(super) fn ask(&mut self, line: &[u8], left: &dyn Fn() -> Duration, interrupt: &Interrupt) -> Result<Vec<u8>, ReplyError> {
        let mut unsent = line;
        let mut gone = None;
        loop {
            unsent = send_available(&mut self.connection, unsent);
            if let Some(line) = self.take() {
                return bounded(line);
            }
            let ended = self.wait(!unsent.is_empty(), left().min(SLICE));
            self.read();
            if let Some(line) = self.take() {
                return bounded(line);
            }
            if self.received.len() > MAX_BYTES + CHUNK {
                return Err(ReplyError::TooLong);
            }
            if ended || !self.is_open {
                let since = *gone.get_or_insert_with(Instant::now);
                if ended || since.elapsed() > GRACE {
                    self.printed.read();
                    return Err(ReplyError::Gone);
                }
            }
            if let Err(interrupted) = interrupt.check() {
                return Err(ReplyError::Interrupted(interrupted));
            }
            if left().is_zero() {
                return Err(ReplyError::TimedOut(self.place()));
            }
        }
    }

    /// Waits until something can be read or sent; returns true if the process has ended.
    fn wait(&mut self, sending: bool, at_most: Duration) -> bool {
        let flags = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let end = self.end.as_ref().map(|end| (end.as_fd(), PollFlags::IN));
        let connection = self.is_open.then(|| (self.connection.as_fd(), flags));
        let watched: Vec<_> = end.into_iter().chain(connection).collect();
        let events = self.printed.wait(&watched, at_most);
        end.is_some() && events.is_some_and(|events| events.first().is_some_and(|event| !event.is_empty()))
    }

    fn read(&mut self) {
        let received = &mut self.received;
        self.is_open = self.is_open
            && read_available(&mut self.connection, |chunk| {
                received.extend_from_slice(chunk);
                received.len() <= MAX_BYTES + CHUNK
            });
    }

    /// Returns the first line, if it is complete.
    fn take(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.received[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.received.len();
            return None;
        };
        let rest = self.received.split_off(self.searched + end + 1);
        let mut line = std::mem::replace(&mut self.received, rest);
        self.searched = 0;
        line.pop();
        Some(line)
    }

    /// Returns the innermost line of the user's code, which the process prints when it receives this signal.
    fn place(&mut self) -> Option<String> {
        self.printed.read();
        let started = Instant::now();
        if !platform::ask_for_place(self.pid) {
            return None;
        }
        while started.elapsed() < GRACE && self.printed.trace().is_none() {
            self.wait(false, SLICE);
        }
        let trace = self.printed.trace()?;
        trace.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    /// Kills the process and its group. The host has not reaped the process yet, so its id is not reused.
    pub(super) fn kill(&self) {
        platform::kill_group(self.pid);
        platform::kill(self.pid);
    }

    /// Returns the last line of output, for the end of a message.
    pub(crate) fn last_line(&self) -> Option<String> {
        let words = self.printed.last_words();
        words.lines().skip(2).last().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
    }
}
