//! A simulated user in the process of its conversation (verl's interactions).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::conversation::Session;
use super::view::{fields, number};
use crate::ReplyFailure;
use crate::participants::{Outcome, PartyError, User, UserReply};
use crate::tools::ConversationView;

/// An interaction of verl.
pub struct PythonUser {
    session: Session,
    name: String,
    kwargs: Value,
    request_id: String,
    timeout: Duration,
}

impl PythonUser {
    /// Creates the interaction with this name and the row's `extra_info.interaction_kwargs`; `request_id` names the conversation,
    /// the same in each run.
    pub fn new(session: Session, name: &str, kwargs: Value, request_id: String, timeout: Duration) -> Self {
        Self { session, name: name.to_owned(), kwargs, request_id, timeout }
    }
}

impl User for PythonUser {
    fn respond(&mut self, view: &ConversationView) -> Outcome<UserReply> {
        let started = Instant::now();
        let arguments = json!({ "name": self.name, "kwargs": self.kwargs, "seen": fields(view), "request_id": self.request_id });
        let reply = match self.session.ask("respond", &arguments, self.timeout)? {
            Ok(reply) => reply,
            Err(error) => {
                return Ok(Err(PartyError { message: format!("the interaction {}: {}", self.name, error.message), ..error }));
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        let (Some(text), Some(ends)) = (reply["text"].as_str(), reply["ends"].as_bool()) else {
            let message = format!("the interaction {} returned an invalid value", self.name);
            return Ok(Err(PartyError { failure: ReplyFailure::Raised, message, seconds }));
        };
        Ok(Ok(UserReply { text: text.to_owned(), ends, score: number(&reply["score"]), seconds }))
    }
}
