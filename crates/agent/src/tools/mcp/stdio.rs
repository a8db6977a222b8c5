//! The stdio transport: the server is a program; each message is a line of its input or output.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::error::McpError;
use super::message::{Incoming, MAX_BYTES, answer, cancelled, incoming, notification, request};
use super::pending::PendingRequests;
use super::process::{ServerProcess, ended};
use super::transport::{CALL, Transport};
use burnish_util::excerpt::excerpt;
use burnish_util::interrupt::Interrupt;

/// The time that a server has to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(500);
const CHUNK: usize = 1 << 16;
/// The number of unread replies with which a program is killed.
const MAX_REPLIES: usize = 1000;

/// A program and its pipes.
pub(super) struct Stdio {
    process: Arc<ServerProcess>,
    waiting: Arc<PendingRequests>,
    lines: Lines,
    interrupt: Interrupt,
}

/// The queue of lines to write. Dropping the sender closes the program's input.
#[derive(Clone)]
struct Lines {
    sender: Arc<Mutex<Option<Sender<Line>>>>,
    /// Number of replies in the queue.
    replies: Arc<AtomicUsize>,
}

/// A line to write; true for the reply to a request of the program.
type Line = (Vec<u8>, bool);

impl Lines {
    /// Queues a message of our own. Calls of tools wait for their replies, so that they bound these messages.
    fn send(&self, message: &Value) {
        self.queue(message, false);
    }

    /// Queues the reply to a request of the program. Returns false if it has left too many replies unread.
    fn reply(&self, message: &Value) -> bool {
        let is_read = self.replies.fetch_add(1, Ordering::Relaxed) < MAX_REPLIES;
        if is_read {
            self.queue(message, true);
        }
        is_read
    }

    fn queue(&self, message: &Value, is_reply: bool) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        if let Some(sender) = &*self.sender.lock().unwrap_or_else(PoisonError::into_inner) {
            _ = sender.send((line, is_reply));
        }
    }

    fn end(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes lines until the queue ends. If the program does not read, only this thread waits.
    fn write(mut input: ChildStdin, lines: &Receiver<Line>, replies: &AtomicUsize) {
        for (line, is_reply) in lines {
            if input.write_all(&line).and_then(|()| input.flush()).is_err() {
                return;
            }
            if is_reply {
                replies.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Stdio {
    /// Starts a program, see [`ServerProcess::start`].
    ///
    /// # Errors
    /// A program that cannot be started.
    pub(super) fn start(
        name: &str,
        program: (&str, &[String]),
        environment: Vec<(OsString, OsString)>,
        folder: Option<&str>,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let (process, input, output) = ServerProcess::start(name, program.0, program.1, environment, folder)?;
        let (sender, receiver) = channel();
        let (waiting, replies) = (Arc::<PendingRequests>::default(), Arc::<AtomicUsize>::default());
        let lines = Lines { sender: Arc::new(Mutex::new(Some(sender))), replies: replies.clone() };
        let spawn = |what: &str, work: Box<dyn FnOnce() + Send>| {
            let named = thread::Builder::new().name(format!("mcp-{what}"));
            named.spawn(work).context("cannot start a thread for the pipes of a server")
        };
        spawn("write", Box::new(move || Lines::write(input, &receiver, &replies)))?;
        let reader = Reader { name: name.to_owned(), process: process.clone(), waiting: waiting.clone(), lines: lines.clone() };
        spawn("read", Box::new(move || reader.run(output)))?;
        Ok(Self { process, waiting, lines, interrupt })
    }
}

impl Transport for Stdio {
    fn request(&self, method: &str, params: Value, end: Instant) -> Result<Value, McpError> {
        let place = self.waiting.place()?;
        self.lines.send(&request(place.id, method, params));
        let answer = place.wait(end, &self.interrupt);
        if matches!(answer, Err(McpError::Late)) && method == CALL {
            self.lines.send(&cancelled(place.id));
        }
        answer
    }

    fn notify(&self, method: &str, _: Instant) {
        self.lines.send(&notification(method, None));
    }

    fn is_open(&self) -> bool {
        !self.waiting.is_over()
    }

    fn is_program(&self) -> bool {
        true
    }

    fn close(&self, why: &str) {
        self.waiting.end(why);
        self.process.end(Duration::ZERO);
    }

    fn last_words(&self) -> String {
        self.process.last_words()
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.waiting.end("was left");
        self.lines.end();
        self.process.end(GRACE);
    }
}

/// The thread that reads the output of a program.
struct Reader {
    name: String,
    process: Arc<ServerProcess>,
    waiting: Arc<PendingRequests>,
    lines: Lines,
}

impl Reader {
    fn run(&self, mut output: ChildStdout) {
        let (mut received, mut chunk) = (Vec::new(), vec![0; CHUNK]);
        let why = 'reading: loop {
            match output.read(&mut chunk) {
                Ok(0) => break None,
                Ok(count) => {
                    let mut rest = &chunk[..count];
                    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                        received.extend_from_slice(&rest[..end]);
                        if !self.line(&received) {
                            break 'reading Some(format!("left {MAX_REPLIES} replies to its requests unread, and was killed"));
                        }
                        received.clear();
                        rest = &rest[end + 1..];
                    }
                    received.extend_from_slice(rest);
                    if received.len() > MAX_BYTES {
                        break Some(format!("wrote a line of more than {} MiB, and was killed", MAX_BYTES >> 20));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break None,
            }
        };
        if let Some(why) = &why {
            self.waiting.end(why);
        }
        // A program that closed its output cannot reply any more, even if it still runs.
        let status = self.process.end(if why.is_some() { Duration::ZERO } else { GRACE });
        self.waiting.end(&ended(status));
    }

    /// Handles a line; returns false if the program must be killed, because it does not read replies.
    fn line(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        if line.is_empty() {
            return true;
        }
        let Some(messages) = incoming(line) else {
            tracing::debug!(
                "the server {} prints a line that is not a message: {}",
                self.name,
                excerpt(&String::from_utf8_lossy(line))
            );
            return true;
        };
        messages.into_iter().all(|message| match message {
            Incoming::Answer(id, answer) => {
                self.waiting.answer(id, answer);
                true
            }
            Incoming::Request { id, method } => self.lines.reply(&answer(&id, &method)),
            Incoming::Other => true,
        })
    }
}
