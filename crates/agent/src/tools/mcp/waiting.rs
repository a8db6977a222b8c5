//! The requests that wait for an answer of a link with one stream of answers.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::failure::Failure;
use burnish_util::interrupt::Interrupt;

/// The longest time that an interrupt goes unnoticed.
const POLL: Duration = Duration::from_millis(50);

type Answer = Result<Value, Failure>;

/// Who waits for which number.
#[derive(Default)]
pub struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    senders: HashMap<u64, SyncSender<Answer>>,
    /// The reason why there will be no answers any more.
    over: Option<String>,
}

/// The place of one request.
pub struct Place<'a> {
    waiting: &'a Waiting,
    pub id: u64,
    receiver: Receiver<Answer>,
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new request.
    ///
    /// # Errors
    /// If the link has ended.
    pub fn place(&self) -> Result<Place<'_>, Failure> {
        let mut state = self.state();
        if let Some(why) = &state.over {
            return Err(Failure::not_there(why));
        }
        state.last += 1;
        let (id, (sender, receiver)) = (state.last, sync_channel(1));
        state.senders.insert(id, sender);
        Ok(Place { waiting: self, id, receiver })
    }

    /// Hands an answer to whoever waits for it. Answers that nobody waits for any more are late.
    pub fn answer(&self, id: u64, answer: Result<Value, String>) {
        if let Some(sender) = self.state().senders.remove(&id) {
            _ = sender.try_send(answer.map_err(Failure::Refused));
        }
    }

    /// Ends the waiting of all requests for this reason, unless it was ended before.
    pub fn end(&self, why: &str) {
        let mut state = self.state();
        if state.over.is_none() {
            state.over = Some(why.to_owned());
        }
        for (_, sender) in state.senders.drain() {
            _ = sender.try_send(Err(Failure::Gone { why: why.to_owned(), delivered: true }));
        }
    }

    /// True if the link has ended.
    pub fn is_over(&self) -> bool {
        self.state().over.is_some()
    }
}

impl Place<'_> {
    /// Waits for the answer until `end`.
    pub fn wait(&self, end: Instant, interrupt: &Interrupt) -> Answer {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left.min(POLL)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::not_there("was left")),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(Failure::Late),
                Err(RecvTimeoutError::Timeout) if interrupt.check().is_err() => return Err(Failure::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.state().senders.remove(&self.id);
    }
}
