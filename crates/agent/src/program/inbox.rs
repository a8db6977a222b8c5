//! What a conversation hears of its program: requests, and its end.

use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Result;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::watch::{Waiting, Watch};
use crate::Trouble;
use crate::endpoint::{Api, Sent};
use crate::parties::Fault;

/// What a program says at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub reward: Option<f64>,
    /// What it leaves for reward functions.
    pub extra: Map<String, Value>,
}

/// News of a program.
pub enum News {
    Asked(Request),
    /// Its end; an error ends the run.
    Ended(Result<Result<Verdict, Fault>>),
}

/// A request that waits for its answer.
pub struct Request {
    pub api: Api,
    pub body: Vec<u8>,
    reply: oneshot::Sender<Sent>,
    /// Dropped behind the answer, so that the program's time goes on with it.
    _waiting: Waiting,
}

impl Request {
    /// True if nobody waits for the answer any more.
    pub fn is_left(&self) -> bool {
        self.reply.is_closed()
    }

    /// Answers; returns false if nobody waits any more.
    pub fn answer(self, sent: Sent) -> bool {
        self.reply.send(sent).is_ok()
    }
}

/// The place to which the news of a program are brought. Clones are the same place.
#[derive(Clone)]
pub struct Desk {
    news: Sender<News>,
    watch: Watch,
}

/// The news of a program, in the order in which they came. Whoever drops it wants the program no more.
pub struct Inbox {
    news: Receiver<News>,
    pub watch: Watch,
    at_end: Option<Box<dyn FnOnce() + Send>>,
}

impl Inbox {
    /// An inbox, and the place that fills it.
    pub fn open() -> (Self, Desk) {
        let (send, news) = channel();
        let watch = Watch::start();
        (Self { news, watch: watch.clone(), at_end: None }, Desk { news: send, watch })
    }

    /// Has this called when the inbox is dropped.
    pub fn at_end(&mut self, call: impl FnOnce() + Send + 'static) {
        self.at_end = Some(Box::new(call));
    }

    /// Waits for the next news.
    pub fn next(&self) -> News {
        // A desk that is gone has said how the program ended, unless nobody runs one.
        self.news.recv().unwrap_or_else(|_| {
            let message = "its program was lost".to_owned();
            News::Ended(Ok(Err(Fault { trouble: Trouble::Died, message, seconds: 0.0 })))
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

impl Desk {
    /// Brings a request, whose answer comes with what is returned; `None` if the conversation is over.
    pub fn ask(&self, api: Api, body: Vec<u8>) -> Option<oneshot::Receiver<Sent>> {
        let (reply, receive) = oneshot::channel();
        let request = Request { api, body, reply, _waiting: self.watch.wait() };
        self.news.send(News::Asked(request)).is_ok().then_some(receive)
    }

    /// Says that the program has ended.
    pub fn end(&self, result: Result<Result<Verdict, Fault>>) {
        // A conversation that was left hears nothing.
        _ = self.news.send(News::Ended(result));
    }
}
