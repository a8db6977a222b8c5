//! The events of a program that a conversation receives: requests, and its end.

use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::stopwatch::{Pause, Stopwatch};
use crate::ReplyFailure;
use crate::endpoint::{Api, HttpReply};
use crate::participants::{Outcome, PartyError};

/// The result of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramResult {
    pub reward: Option<f64>,
    /// Values for reward functions.
    pub extra: Map<String, Value>,
}

/// An event of a program.
pub enum ProgramEvent {
    Request(ModelRequest),
    /// The end of the program; an error ends the run.
    Ended(Outcome<ProgramResult>),
}

/// A request that waits for its reply.
pub struct ModelRequest {
    pub api: Api,
    pub body: Vec<u8>,
    reply: oneshot::Sender<HttpReply>,
    /// Dropped after the reply, so that the program's stopwatch resumes then.
    _waiting: Pause,
}

impl ModelRequest {
    /// Returns true if the reply is not awaited any more.
    pub fn is_left(&self) -> bool {
        self.reply.is_closed()
    }

    /// Sends the reply; returns false if it is not awaited any more.
    pub fn reply(self, reply: HttpReply) -> bool {
        self.reply.send(reply).is_ok()
    }
}

/// The sender of a program's events. Clones share it.
#[derive(Clone)]
pub struct ProgramHandle {
    events: Sender<ProgramEvent>,
    watch: Stopwatch,
}

/// The receiver of a program's events, in order. Dropping it means that the program is not needed any more.
pub struct Inbox {
    events: Receiver<ProgramEvent>,
    pub watch: Stopwatch,
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

impl Inbox {
    /// Creates an inbox, and the handle that fills it.
    pub fn open() -> (Self, ProgramHandle) {
        let (send, events) = channel();
        let watch = Stopwatch::start();
        (Self { events, watch: watch.clone(), at_end: None }, ProgramHandle { events: send, watch })
    }

    /// Sets a function that is called when the inbox is dropped.
    pub fn at_end(&mut self, call: impl FnOnce() + Send + 'static) {
        self.at_end = Some(Box::new(call));
    }

    /// Waits for the next event.
    pub fn next(&self) -> ProgramEvent {
        // Handles report the end before they are dropped, unless the program is not running.
        self.events.recv().unwrap_or_else(|_| {
            let message = "its program was lost".to_owned();
            ProgramEvent::Ended(Ok(Err(PartyError { failure: ReplyFailure::Died, message, seconds: 0.0 })))
        })
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.watch.leave();
        if let Some(call) = self.at_end.take() {
            call();
        }
    }
}

impl ProgramHandle {
    /// Sends a request and returns the receiver of its reply; `None` if the conversation is over.
    pub fn ask(&self, api: Api, body: Vec<u8>) -> Option<oneshot::Receiver<HttpReply>> {
        let (reply, receive) = oneshot::channel();
        let request = ModelRequest { api, body, reply, _waiting: self.watch.wait() };
        self.events.send(ProgramEvent::Request(request)).is_ok().then_some(receive)
    }

    /// Reports the end of the program.
    pub fn end(&self, result: Outcome<ProgramResult>) {
        // The conversation may have been dropped.
        _ = self.events.send(ProgramEvent::Ended(result));
    }
}
