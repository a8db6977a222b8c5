//! A program: a function in the user's file that leads a conversation itself, in the process of the conversation.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::conversation::{Session, TimeLimit};
use super::view::number;
use crate::participants::{Outcome, PartyError};
use crate::program::{Inbox, ProgramHandle, ProgramResult, Stopwatch};
use crate::{ConversationLimits, ReplyFailure};

/// The time limit of a program without one.
const ENDLESS: Duration = Duration::from_secs(u32::MAX as u64);

/// The server address and credentials for a program.
#[derive(Clone, Debug)]
pub struct ApiAccess {
    pub base_url: String,
    /// The key that identifies the requests of the conversation.
    pub api_key: String,
    pub model: String,
}

/// Reports an end when the thread of a program ends in any way. Only the first reported end counts.
struct EndOnDrop(ProgramHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let message = "the thread of the program ended early".to_owned();
        self.0.end(Ok(Err(PartyError { failure: ReplyFailure::Died, message, seconds: 0.0 })));
    }
}

/// The program of a conversation.
pub struct PythonProgram {
    session: Session,
    row: Map<String, Value>,
    request_id: String,
    call_timeout: Duration,
    conversation_timeout: Option<Duration>,
}

impl PythonProgram {
    /// Creates the program for a row, which receives all its columns. `request_id` names the conversation, the same in each run.
    /// The program may take [`ConversationLimits::call_timeout`] between two responses of the model, and `conversation_timeout`
    /// in total.
    pub fn new(session: Session, row: Map<String, Value>, request_id: String, limits: &ConversationLimits) -> Self {
        let ConversationLimits { call_timeout, conversation_timeout, .. } = *limits;
        Self { session, row, request_id, call_timeout, conversation_timeout }
    }

    /// Runs the program on a separate thread, and reports its end to the handle. The program is killed when it is no longer
    /// needed.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn begin(self, access: ApiAccess, inbox: &Inbox, handle: ProgramHandle) -> Result<()> {
        let watch = inbox.watch.clone();
        let run = move || {
            let _broken = EndOnDrop(handle.clone());
            let result = self.run(&access, &watch);
            // End the process with its session first, so that it sends no more requests.
            drop(self);
            handle.end(result);
        };
        thread::Builder::new()
            .name("program".to_owned())
            .spawn(run)
            .context("cannot start a thread for the program of a conversation")?;
        Ok(())
    }

    fn run(&self, ApiAccess { base_url, api_key, model }: &ApiAccess, watch: &Stopwatch) -> Outcome<ProgramResult> {
        let access = json!({ "base_url": base_url, "api_key": api_key, "model": model });
        if let Err(error) = self.session.ask("access", &access, self.call_timeout)? {
            return Ok(Err(error));
        }
        // The start of the process does not count as time of the program.
        watch.begin();
        let left = || self.time_left(watch);
        let time = TimeLimit::Watched { longest: self.conversation_timeout.unwrap_or(ENDLESS), left: &left };
        let arguments = json!({ "row": self.row, "conversation": self.request_id });
        Ok(match self.session.ask_in_time("program", &arguments, time)? {
            Ok(mut reply) => {
                let extra = reply["extra"].as_object_mut().map(std::mem::take).unwrap_or_default();
                Ok(ProgramResult { reward: number(&reply["reward"]), extra })
            }
            Err(error) if error.failure == ReplyFailure::Timeout => {
                let message = match self.late(watch) {
                    true => format!(
                        "the program took longer than actor_rollout_ref.rollout.agent.conversation_timeout: it {}",
                        error.message
                    ),
                    false => format!(
                        "the program took longer than actor_rollout_ref.rollout.agent.call_timeout without a request to the model: it {}",
                        error.message
                    ),
                };
                Err(PartyError { message, ..error })
            }
            Err(error) => Err(PartyError { message: format!("the program: {}", error.message), ..error }),
        })
    }

    /// Returns the remaining time, and the limit that applies.
    fn time_left(&self, watch: &Stopwatch) -> (Duration, Duration) {
        let (last, all) = watch.elapsed();
        let of_call = (self.call_timeout.saturating_sub(last), self.call_timeout);
        let of_all = self.conversation_timeout.map(|limit| (limit.saturating_sub(all), limit));
        match of_all {
            _ if watch.is_left() => (Duration::ZERO, Duration::ZERO),
            Some(of_all) if of_all.0 < of_call.0 => of_all,
            _ => of_call,
        }
    }

    fn late(&self, watch: &Stopwatch) -> bool {
        self.conversation_timeout.is_some_and(|limit| watch.elapsed().1 >= limit)
    }
}
