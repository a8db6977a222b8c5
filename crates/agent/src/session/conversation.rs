//! A conversation's own process: begun when it is first needed, asked one thing at a time, and gone with the conversation.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::channel::Lost;
use super::host::{Forked, Host};
use super::words::WORDS;
use crate::Trouble;
use crate::parties::Fault;
use burnish_python::message::seed;
use burnish_python::process::MOST_BYTES;

/// The process of one conversation. Clones share it; one is asked after the other.
#[derive(Clone)]
pub struct Session(Arc<Mutex<Conversation>>);

/// The time that a question may take, once there is a process for it.
#[derive(Clone, Copy)]
pub enum Time<'a> {
    For(Duration),
    /// For each of `count` calls, which tell when they begin and when they end. Calls may wait for each other, and one of those that run has
    /// begun at the last of these times, or goes on since then: so a call that stays within its limit is never late.
    Each {
        limit: Duration,
        count: usize,
        last: &'a Cell<Instant>,
    },
    Watched {
        /// The longest time that it can be: what bounds the processor time.
        longest: Duration,
        /// What is left, and the limit that it is left of.
        left: &'a dyn Fn() -> (Duration, Duration),
    },
}

impl Time<'_> {
    /// The longest time of a call, and the number of calls.
    fn longest(self) -> (Duration, u64) {
        match self {
            Self::For(longest) | Self::Watched { longest, .. } => (longest, 1),
            Self::Each { limit, count, .. } => (limit, count as u64),
        }
    }

    /// Counts from now on.
    fn begin(self, now: Instant) {
        if let Self::Each { last, .. } = self {
            last.set(now);
        }
    }

    fn left(self, begun: Instant) -> (Duration, Duration) {
        match self {
            Self::For(limit) => (limit.saturating_sub(begun.elapsed()), limit),
            Self::Each { limit, last, .. } => (limit.saturating_sub(last.get().elapsed()), limit),
            Self::Watched { left, .. } => left(),
        }
    }
}

struct Conversation {
    host: Host,
    process: Option<Forked>,
    /// The number of processes that were lost with what they kept.
    losses: usize,
}

impl Host {
    /// A conversation, whose process begins when it is first asked something.
    pub fn session(&self) -> Session {
        Session(Arc::new(Mutex::new(Conversation { host: self.clone(), process: None, losses: 0 })))
    }
}

impl Session {
    /// Asks the process to carry out an operation, and returns its reply. Equal arguments come with equal random seeds.
    ///
    /// After [`Trouble::Timeout`] and [`Trouble::Died`] the process is gone with all that it started; the next question begins a new one,
    /// which knows nothing of what was before.
    ///
    /// # Errors
    /// An interrupt. What the user's code does wrong is a [`Fault`].
    pub fn ask(&self, op: &str, arguments: &impl Serialize, timeout: Duration) -> Result<Result<Value, Fault>> {
        self.ask_in_parts(op, arguments, Time::For(timeout), &mut |_| ())
    }

    /// Like [`Self::ask`], in a time of its own; parts of the reply, which come before it, go to `part`.
    ///
    /// # Errors
    /// Those of [`Self::ask`].
    pub fn ask_in_parts(
        &self,
        op: &str,
        arguments: &impl Serialize,
        time: Time,
        part: &mut dyn FnMut(Value),
    ) -> Result<Result<Value, Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ask(op, arguments, time, part)
    }

    /// Like [`Self::ask`], in a time of its own.
    ///
    /// # Errors
    /// Those of [`Self::ask`].
    pub fn ask_in_time(&self, op: &str, arguments: &impl Serialize, time: Time) -> Result<Result<Value, Fault>> {
        self.ask_in_parts(op, arguments, time, &mut |_| ())
    }

    /// The number of processes of this conversation that were killed or died, each with all that it kept.
    pub fn losses(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).losses
    }
}

impl Conversation {
    fn ask(
        &mut self,
        op: &str,
        arguments: &impl Serialize,
        time: Time,
        part: &mut dyn FnMut(Value),
    ) -> Result<Result<Value, Fault>> {
        self.host.options().interrupt.check()?;
        let line = request(op, arguments, self.cpu(time))?;
        if self.process.is_none()
            && let Err(fault) = self.begin()?
        {
            return Ok(Err(fault));
        }
        let Some(forked) = &mut self.process else { return Ok(Err(fault(Trouble::Died, String::new(), Instant::now()))) };
        let begun = Instant::now();
        time.begin(begun);
        let mut line = line.as_slice();
        loop {
            let reply = forked.channel.ask(line, &|| time.left(begun).0, &self.host.options().interrupt);
            line = &[];
            let reply = match reply {
                Ok(reply) => serde_json::from_slice::<Value>(&reply).ok(),
                Err(lost) => return self.lost(lost, time, begun),
            };
            match reply {
                Some(Value::Object(mut reply)) if reply.contains_key("part") => part(reply.remove("part").unwrap_or_default()),
                Some(Value::Object(mut reply)) if reply.contains_key("value") => {
                    return Ok(Ok(reply.remove("value").unwrap_or_default()));
                }
                Some(Value::Object(reply)) if reply.contains_key("raised") => {
                    let text = reply["raised"].as_str().unwrap_or_default();
                    let hint = WORDS.memory_hint(text, self.host.options().memory_limit_mb).replace('\n', " ");
                    return Ok(Err(fault(Trouble::Raised, format!("{text}{hint}"), begun)));
                }
                // The user's code writes to the connection; nothing on it can be trusted any more.
                _ => {
                    self.end();
                    let text = "its process says nothing that can be read, and was ended".to_owned();
                    return Ok(Err(fault(Trouble::Died, text, begun)));
                }
            }
        }
    }

    /// The limit on processor time in seconds.
    fn cpu(&self, time: Time) -> u64 {
        let (longest, calls) = time.longest();
        self.host.cpu(longest).saturating_mul(calls).min(u64::from(u32::MAX))
    }

    /// Begins a process. Where conversations load the files themselves, it has loaded them then.
    fn begin(&mut self) -> Result<Result<(), Fault>> {
        let (host, limit) = (self.host.clone(), self.host.options().start_timeout);
        let interrupt = &host.options().interrupt;
        let place = if host.loads_each() { Some(host.enter()?) } else { None };
        let begun = Instant::now();
        let forked = match host.fork() {
            Ok(forked) => self.process.insert(forked),
            Err(error) => {
                interrupt.check()?;
                return Ok(Err(fault(Trouble::Died, format!("{error:#}"), begun)));
            }
        };
        let Some(place) = place else { return Ok(Ok(())) };
        let said = match forked.channel.ask(&[], &|| limit.saturating_sub(begun.elapsed()), interrupt) {
            Ok(reply) => serde_json::from_slice::<Value>(&reply).unwrap_or_default(),
            Err(lost) => match self.lost(lost, Time::For(limit), begun)? {
                Err(fault) => json!({ "raised": fault.message }),
                Ok(reply) => reply,
            },
        };
        if said.get("value").is_some() {
            return Ok(Ok(()));
        }
        self.end();
        let why = said["raised"].as_str().unwrap_or("its process says nothing that can be read");
        let message = format!("the agent files could not be loaded for a conversation: {why}");
        place.failed(&message);
        Ok(Err(fault(Trouble::Died, message, begun)))
    }

    /// Ends a process from which there is no reply, and says why there is none.
    fn lost(&mut self, lost: Lost, time: Time, begun: Instant) -> Result<Result<Value, Fault>> {
        let last = self.process.as_ref().and_then(|forked| forked.channel.last_line());
        let status = self.end();
        let last = last.map(|line| format!("; it printed last: {line}")).unwrap_or_default();
        let seconds = time.left(begun).1.as_secs_f64();
        let (trouble, message) = match lost {
            Lost::Interrupted(interrupted) => return Err(interrupted),
            Lost::TimedOut(place) => {
                let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
                (Trouble::Timeout, format!("timed out after {seconds} s{place}"))
            }
            Lost::TooLong => (Trouble::Raised, format!("its answer has more than {MOST_BYTES} bytes")),
            Lost::Gone => {
                let how = status.map(|status| WORDS.ended(status, self.cpu(time)));
                (Trouble::Died, format!("its process {}{last}", how.unwrap_or_else(|| "died".to_owned())))
            }
        };
        Ok(Err(fault(trouble, format!("{message}; what it kept is lost"), begun)))
    }

    /// Ends the process; returns how it ended, if that is known.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        let forked = self.process.take()?;
        self.losses += 1;
        self.host.reap(&forked)
    }
}

/// The line of a request.
fn request(op: &str, arguments: &impl Serialize, cpu_seconds: u64) -> Result<Vec<u8>> {
    let arguments = serde_json::to_vec(arguments).context("the arguments of a call are no JSON")?;
    let seed = seed(&arguments);
    let mut line = format!("{{\"op\":\"{op}\",\"seed\":{seed},\"cpu_seconds\":{cpu_seconds},\"arguments\":").into_bytes();
    line.extend(arguments);
    line.extend(b"}\n");
    Ok(line)
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.end();
    }
}

fn fault(trouble: Trouble, message: String, begun: Instant) -> Fault {
    Fault { trouble, message, seconds: begun.elapsed().as_secs_f64() }
}
