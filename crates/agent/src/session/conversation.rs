//! The process of one conversation: started when first needed, handling one request at a time, and ended with the conversation.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::channel::ReplyError;
use super::host::{ForkedProcess, Host};
use super::starting::is_exhausted;
use super::words::WORDS;
use crate::ReplyFailure;
use crate::participants::{Outcome, PartyError};
use burnish_python::message::seed;
use burnish_python::process::{MAX_BYTES, MAX_VALUES};

/// The process of one conversation. Clones share it; their requests run one after another.
#[derive(Clone)]
pub struct Session(Arc<Mutex<ConversationProcess>>);

/// The time limit of a request, once the process has started.
#[derive(Clone, Copy)]
pub enum TimeLimit<'a> {
    For(Duration),
    /// A limit for each of `count` calls, which report their start and end. Calls may wait for each other. Any running call has
    /// started or resumed after the last of these reports, so a call within its limit is never late.
    Each {
        limit: Duration,
        count: usize,
        last: &'a Cell<Instant>,
    },
    Watched {
        /// The longest possible time, which limits the processor time.
        longest: Duration,
        /// Returns the remaining time, and the limit that applies.
        left: &'a dyn Fn() -> (Duration, Duration),
    },
}

impl TimeLimit<'_> {
    /// Returns the longest time of a call, and the number of calls.
    fn longest(self) -> (Duration, u64) {
        match self {
            Self::For(longest) | Self::Watched { longest, .. } => (longest, 1),
            Self::Each { limit, count, .. } => (limit, count as u64),
        }
    }

    /// Starts the clock.
    fn begin(self, now: Instant) {
        if let Self::Each { last, .. } = self {
            last.set(now);
        }
    }

    fn left(self, started: Instant) -> (Duration, Duration) {
        match self {
            Self::For(limit) => (limit.saturating_sub(started.elapsed()), limit),
            Self::Each { limit, last, .. } => (limit.saturating_sub(last.get().elapsed()), limit),
            Self::Watched { left, .. } => left(),
        }
    }
}

struct ConversationProcess {
    host: Host,
    process: Option<ForkedProcess>,
    /// The number of processes that were lost with their state.
    losses: usize,
}

impl Host {
    /// Creates a conversation, whose process starts at the first request.
    pub fn session(&self) -> Session {
        Session(Arc::new(Mutex::new(ConversationProcess { host: self.clone(), process: None, losses: 0 })))
    }
}

impl Session {
    /// Sends an operation to the process, and returns its reply. Equal arguments get equal random seeds.
    ///
    /// After [`ReplyFailure::Timeout`] and [`ReplyFailure::Died`] the process is gone with everything that it started; the next
    /// request starts a new process without the old state.
    ///
    /// # Errors
    /// An interrupt. Failures of the user's code are a [`PartyError`].
    pub fn ask(&self, op: &str, arguments: &impl Serialize, timeout: Duration) -> Outcome<Value> {
        self.ask_in_parts(op, arguments, TimeLimit::For(timeout), &mut |_| ())
    }

    /// Like [`Self::ask`], with a separate time limit; `part` receives parts of the reply that arrive before it.
    ///
    /// # Errors
    /// The errors of [`Self::ask`].
    pub(crate) fn ask_in_parts(
        &self,
        op: &str,
        arguments: &impl Serialize,
        time: TimeLimit,
        part: &mut dyn FnMut(Value),
    ) -> Outcome<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ask(op, arguments, time, part)
    }

    /// Like [`Self::ask`], with a separate time limit.
    ///
    /// # Errors
    /// The errors of [`Self::ask`].
    pub(crate) fn ask_in_time(&self, op: &str, arguments: &impl Serialize, time: TimeLimit) -> Outcome<Value> {
        self.ask_in_parts(op, arguments, time, &mut |_| ())
    }

    /// Returns the number of this conversation's processes that were killed or died, each with its state.
    pub fn losses(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).losses
    }
}

impl ConversationProcess {
    fn ask(&mut self, op: &str, arguments: &impl Serialize, time: TimeLimit, part: &mut dyn FnMut(Value)) -> Outcome<Value> {
        self.host.options().interrupt.check()?;
        let line = request(op, arguments, self.cpu(time))?;
        if self.process.is_none()
            && let Err(failure) = self.begin()?
        {
            return Ok(Err(failure));
        }
        let Some(forked) = &mut self.process else {
            return Ok(Err(party_error(ReplyFailure::Died, String::new(), Instant::now())));
        };
        let started = Instant::now();
        time.begin(started);
        let mut line = line.as_slice();
        loop {
            let reply = forked.channel.ask(line, &|| time.left(started).0, &self.host.options().interrupt);
            line = &[];
            let reply = match reply {
                Ok(reply) => serde_json::from_slice::<Value>(&reply).ok(),
                Err(lost) => return self.lost(lost, time, started),
            };
            match reply {
                Some(Value::Object(mut reply)) if reply.contains_key("part") => part(reply.remove("part").unwrap_or_default()),
                Some(Value::Object(mut reply)) if reply.contains_key("value") => {
                    return Ok(Ok(reply.remove("value").unwrap_or_default()));
                }
                Some(Value::Object(reply)) if reply.contains_key("raised") => {
                    let text = reply["raised"].as_str().unwrap_or_default();
                    let hint = WORDS.memory_hint(text, self.host.options().memory_limit_mb).replace('\n', " ");
                    return Ok(Err(party_error(ReplyFailure::Raised, format!("{text}{hint}"), started)));
                }
                // The user's code writes to the connection, so nothing on it can be trusted any more.
                _ => {
                    self.end();
                    let text = "its process sent an unreadable reply, and was ended".to_owned();
                    return Ok(Err(party_error(ReplyFailure::Died, text, started)));
                }
            }
        }
    }

    /// Returns the limit on processor time in seconds.
    fn cpu(&self, time: TimeLimit) -> u64 {
        let (longest, calls) = time.longest();
        self.host.cpu(longest).saturating_mul(calls).min(u64::from(u32::MAX))
    }

    /// Starts a process. If conversations load the files themselves, waits until it has loaded them.
    ///
    /// # Errors
    /// An interrupt, or a lack of files, memory or disk.
    fn begin(&mut self) -> Outcome<()> {
        let (host, limit) = (self.host.clone(), self.host.options().start_timeout);
        let interrupt = &host.options().interrupt;
        let place = if host.loads_each() { Some(host.enter()?) } else { None };
        let started = Instant::now();
        let forked = match host.fork() {
            Ok(forked) => self.process.insert(forked),
            Err(error) => {
                interrupt.check()?;
                if is_exhausted(&error) {
                    return Err(error.context("the process of a conversation cannot be started"));
                }
                let message = format!("{error:#}");
                host.failed(&message);
                return Ok(Err(party_error(ReplyFailure::Died, message, started)));
            }
        };
        if place.is_none() {
            return Ok(Ok(()));
        }
        let response = match forked.channel.ask(&[], &|| limit.saturating_sub(started.elapsed()), interrupt) {
            Ok(reply) => serde_json::from_slice::<Value>(&reply).unwrap_or_default(),
            Err(lost) => match self.lost(lost, TimeLimit::For(limit), started)? {
                Err(failure) => json!({ "raised": failure.message }),
                Ok(reply) => reply,
            },
        };
        if response.get("value").is_some() {
            return Ok(Ok(()));
        }
        self.end();
        let why = response["raised"].as_str().unwrap_or("its process sent an unreadable reply");
        let message = format!("the agent files could not be loaded for a conversation: {why}");
        host.failed(&message);
        Ok(Err(party_error(ReplyFailure::Died, message, started)))
    }

    /// Ends a process that did not reply, and returns the reason.
    fn lost(&mut self, lost: ReplyError, time: TimeLimit, started: Instant) -> Outcome<Value> {
        let last = self.process.as_ref().and_then(|forked| forked.channel.last_line());
        let status = self.end();
        let last = last.map(|line| format!("; it printed last: {line}")).unwrap_or_default();
        let seconds = time.left(started).1.as_secs_f64();
        let (failure, message) = match lost {
            ReplyError::Interrupted(interrupted) => return Err(interrupted),
            ReplyError::TimedOut(place) => {
                let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
                (ReplyFailure::Timeout, format!("timed out after {seconds} s{place}"))
            }
            ReplyError::TooLong => (ReplyFailure::Raised, format!("its reply has more than {MAX_BYTES} bytes")),
            ReplyError::TooManyValues => (ReplyFailure::Raised, format!("its reply has more than {MAX_VALUES} values")),
            ReplyError::Gone => {
                let how = status.map(|status| WORDS.ended(status, self.cpu(time)));
                (ReplyFailure::Died, format!("its process {}{last}", how.unwrap_or_else(|| "died".to_owned())))
            }
        };
        Ok(Err(party_error(failure, format!("{message}; its state is lost"), started)))
    }

    /// Ends the process; returns its exit status, if known.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        let forked = self.process.take()?;
        self.losses += 1;
        self.host.reap(&forked)
    }
}

/// Returns the line of a request.
fn request(op: &str, arguments: &impl Serialize, cpu_seconds: u64) -> Result<Vec<u8>> {
    let arguments = serde_json::to_vec(arguments).context("the arguments of a call cannot be written as JSON")?;
    let seed = seed(&arguments);
    let mut line = format!("{{\"op\":\"{op}\",\"seed\":{seed},\"cpu_seconds\":{cpu_seconds},\"arguments\":").into_bytes();
    line.extend(arguments);
    line.extend(b"}\n");
    Ok(line)
}

impl Drop for ConversationProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn party_error(failure: ReplyFailure, message: String, started: Instant) -> PartyError {
    PartyError { failure, message, seconds: started.elapsed().as_secs_f64() }
}
