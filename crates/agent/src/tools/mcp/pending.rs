//! The pending requests of a transport whose replies share one stream.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::error::McpError;
use burnish_util::interrupt::Interrupt;

/// The longest time until an interrupt is noticed.
const POLL: Duration = Duration::from_millis(50);

type PendingReply = Result<Value, McpError>;

/// The pending requests, by their ids.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    senders: HashMap<u64, SyncSender<PendingReply>>,
    /// The reason why no more replies will come.
    over: Option<String>,
}

/// A pending request.
pub(crate) struct PendingRequest<'a> {
    waiting: &'a PendingRequests,
    pub id: u64,
    receiver: Receiver<PendingReply>,
}

impl PendingRequests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new request.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(super) fn place(&self) -> Result<PendingRequest<'_>, McpError> {
        let mut state = self.state();
        if let Some(why) = &state.over {
            return Err(McpError::undelivered(why));
        }
        state.last += 1;
        let (id, (sender, receiver)) = (state.last, sync_channel(1));
        state.senders.insert(id, sender);
        Ok(PendingRequest { waiting: self, id, receiver })
    }

    /// Passes a reply to its request. Replies to requests that timed out are dropped.
    pub(super) fn answer(&self, id: u64, answer: Result<Value, String>) {
        if let Some(sender) = self.state().senders.remove(&id) {
            _ = sender.try_send(answer.map_err(McpError::Refused));
        }
    }

    /// Fails all pending requests for this reason, unless the connection already ended.
    pub(super) fn end(&self, why: &str) {
        let mut state = self.state();
        if state.over.is_none() {
            state.over = Some(why.to_owned());
        }
        for (_, sender) in state.senders.drain() {
            _ = sender.try_send(Err(McpError::Gone { why: why.to_owned(), delivered: true }));
        }
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().over.is_some()
    }
}

impl PendingRequest<'_> {
    /// Waits for the reply until `end`.
    pub(super) fn wait(&self, end: Instant, interrupt: &Interrupt) -> PendingReply {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left.min(POLL)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(McpError::undelivered("was left")),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(McpError::Late),
                Err(RecvTimeoutError::Timeout) if interrupt.check().is_err() => return Err(McpError::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.waiting.state().senders.remove(&self.id);
    }
}
