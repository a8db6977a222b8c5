//! A model with tools, and optionally a simulated user (verl's `tool_agent`): the loop of verl 0.9.1, with the users of verl 0.7.
//!
//! A turn is sampled. If it reaches a limit, the conversation ends without running its calls. If it has calls, their results are
//! appended and the model continues. Otherwise the user replies, or the conversation ends. The response always ends with a
//! sampled token.
//!
//! Differences from verl:
//! - The messages have every turn of the model, including one that reached a limit, and all calls, including those that are not
//!   run. As in TRL they have no special tokens, and no results that did not fit. verl's reward functions see no messages.
//! - A user's closing message is in the messages but not in the tokens. Other messages of a user are appended only if they fit,
//!   like tool results. verl 0.7 appends both, so that the response ends with tokens that are not trained.
//! - With [`ToolAgent::tells_unreadable`], a model whose calls cannot be parsed gets an error message and continues. verl treats
//!   such a turn as the final response. That is the default here too, with a separate end reason ([`EndReason::UnreadableCall`]).
//! - Reaching the length of the model ends the conversation like reaching the response length; verl's engine fails then.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::calls::{ParsedTurn, ToolCall};
use super::super::participants::User;
use super::super::tools::{ConversationView, Toolbox, ValidCall, truncated};
use super::super::{EndReason, Episode, ReplyFailure};
use super::agent_loop::{AgentLoop, NextAction};
use super::arguments::read_arguments;
use super::chat::Chat;
use super::episode_record::EpisodeRecord;
use super::run_calls::{CheckedCall, names, refusal, run_calls};
use burnish_rollout::Response;
use burnish_util::python_value::quoted;

/// The message to a model whose calls cannot be parsed.
const UNREADABLE: &str =
    "The call of a tool in your last message could not be read. Write it again in the form that you were shown.";

/// A conversation of a model with tools, and optionally a user.
pub struct ToolAgent {
    record: EpisodeRecord,
    chat: Arc<dyn Chat>,
    tools: Box<dyn Toolbox>,
    user: Option<Box<dyn User>>,
    /// With a user: the indices of messages with calls, and the whole texts of their turns.
    texts: Vec<(usize, String)>,
    tells_unreadable: bool,
}

impl ToolAgent {
    pub fn new(record: EpisodeRecord, chat: Arc<dyn Chat>, tools: Box<dyn Toolbox>) -> Self {
        Self { record, chat, tools, user: None, texts: Vec::new(), tells_unreadable: false }
    }

    /// Adds a user, who replies to turns without calls.
    pub fn with_user(self, user: Box<dyn User>) -> Self {
        Self { user: Some(user), ..self }
    }

    /// With `true`, a model gets an error message if none of its calls could be parsed, and continues.
    pub fn tells_unreadable(self, tells_unreadable: bool) -> Self {
        Self { tells_unreadable, ..self }
    }

    /// Records the message of a model's turn.
    fn say(&mut self, ids: &[u32], parsed: &ParsedTurn) -> Result<()> {
        let mut message = json!({"role": "assistant", "content": parsed.content});
        if !parsed.calls.is_empty() {
            message["tool_calls"] = parsed.calls.iter().map(call_message).collect();
            if self.user.is_some() {
                self.texts.push((self.record.messages().len(), self.chat.plain_text(ids)?));
            }
        }
        self.record.say(message);
        Ok(())
    }

    /// Runs the calls of a turn, and continues with their results.
    fn answer_calls(&mut self, calls: Vec<ToolCall>) -> Result<NextAction> {
        let ids: Vec<Option<String>> = calls.iter().map(|call| call.id.clone()).collect();
        let calls = calls.into_iter().map(|call| checked(call, self.tools.schemas())).collect();
        let (longest, side) = (self.record.limits().max_tool_response_length, self.record.limits().truncate);
        let answers = run_calls(
            &mut self.record,
            &mut *self.tools,
            calls,
            |name| refusal(format!("Error executing tool '{name}': it gave no answer"), Some(0.0), ReplyFailure::Raised),
            |text| match truncated(text, longest, side) {
                Cow::Owned(shorter) => Some(shorter),
                Cow::Borrowed(_) => None,
            },
        )?;
        let messages = answers.into_iter().zip(ids).map(|(answer, id)| {
            let mut message = json!({"role": "tool", "content": answer.text});
            if let Some(id) = id {
                message["tool_call_id"] = id.into();
            }
            message
        });
        let messages: Vec<Value> = messages.collect();
        self.continue_with(messages)
    }

    /// Lets the user reply.
    fn answer_by_user(&mut self) -> Result<NextAction> {
        let Some(user) = &mut self.user else { return Ok(self.record.end(EndReason::Answer)) };
        let started = Instant::now();
        let view = self.record.view();
        let messages = with_texts(view.messages, &self.texts);
        let reply = match user.respond(&ConversationView { messages: &messages, ..view })? {
            Ok(reply) => reply,
            Err(error) => return Ok(self.record.fault(error)),
        };
        self.record.waited(started.elapsed().as_secs_f64().max(reply.seconds));
        if let Some(score) = reply.score {
            self.record.reward(score, false);
        }
        let message = json!({"role": "user", "content": reply.text});
        if reply.ends {
            self.record.say(message);
            self.record.count_user_turn();
            return Ok(self.record.end(EndReason::Done));
        }
        self.continue_with(vec![message])
    }

    /// Continues with new messages to the model.
    fn continue_with(&mut self, new: Vec<Value>) -> Result<NextAction> {
        let history = self.record.messages().len();
        for message in new {
            self.record.say(message);
        }
        if let Some(end) = self.record.end_if_late() {
            return Ok(end);
        }
        if self.record.is_beyond(&self.record.messages()[history..]) {
            self.record.unsay(history);
            return Ok(self.record.end(EndReason::ContextTooLong));
        }
        let (before, new) = self.record.messages().split_at(history);
        let appended = self.chat.append(&calls_run(before, new), &self.record.ids(), new);
        let appended = appended.context("the messages to the model cannot be appended")?;
        Ok(self.record.append_if_fits(&appended, history))
    }
}

impl AgentLoop for ToolAgent {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if self.record.has_ended() {
            return Ok(NextAction::End);
        }
        let Some(turn) = turn else { return Ok(self.record.ask()) };
        let turn = self.record.take(turn);
        let mut parsed = self.chat.read(&turn.ids, self.tools.schemas())?;
        self.say(&turn.ids, &parsed)?;
        if let Some(end) = self.record.bound_reached() {
            return Ok(self.record.end(end));
        }
        self.record.note_unreadable(parsed.unreadable);
        let calls_run = parsed.calls.len().min(self.record.limits().max_parallel_calls.max(1));
        self.record.note_dropped(parsed.calls.len() - calls_run);
        parsed.calls.truncate(calls_run);
        if !parsed.calls.is_empty() {
            self.answer_calls(parsed.calls)
        } else if parsed.unreadable > 0 && self.tells_unreadable {
            self.continue_with(vec![json!({"role": "user", "content": UNREADABLE})])
        } else if parsed.unreadable > 0 && self.user.is_none() {
            Ok(self.record.end(EndReason::UnreadableCall))
        } else {
            self.answer_by_user()
        }
    }

    fn finish(mut self: Box<Self>) -> Episode {
        self.record.tools = self.tools.schemas().to_vec();
        self.record.episode()
    }
}

/// Returns the messages that users see: as in verl 0.7, the text of a turn includes its calls.
fn with_texts<'a>(messages: &'a [Value], texts: &[(usize, String)]) -> Cow<'a, [Value]> {
    let mut shown = Cow::Borrowed(messages);
    for (at, text) in texts {
        shown.to_mut()[*at]["content"] = text.as_str().into();
    }
    shown
}

/// Returns the messages before tool results, without the last message's calls that have no result: templates match calls and
/// results by position.
fn calls_run<'a>(before: &'a [Value], answers: &[Value]) -> Cow<'a, [Value]> {
    let calls = before.last().and_then(|message| message.get("tool_calls")?.as_array()).map_or(0, Vec::len);
    let mut before = Cow::Borrowed(before);
    if calls > answers.len()
        && let Some(Value::Array(calls)) = before.to_mut().last_mut().and_then(|message| message.get_mut("tool_calls"))
    {
        calls.truncate(answers.len());
    }
    before
}

/// Returns a call as part of a message; arguments that are not a JSON object stay text.
fn call_message(call: &ToolCall) -> Value {
    let arguments = read_arguments(&call.arguments).ok().filter(Value::is_object);
    let arguments = arguments.unwrap_or_else(|| call.arguments.clone().into());
    let mut message = json!({"type": "function", "function": {"name": call.name, "arguments": arguments}});
    if let Some(id) = &call.id {
        message["id"] = id.clone().into();
    }
    message
}

/// Returns the call if the tool exists and the arguments are JSON of any type; otherwise the error text for the model, with
/// verl's reward of 0.
pub(super) fn checked(call: ToolCall, schemas: &[Value]) -> CheckedCall {
    let name = &call.name;
    if !names(schemas).any(|known| known == name) {
        let known: Vec<String> = names(schemas).map(quoted).collect();
        let text = format!("Unknown function '{name}'. Available tools: [{}]", known.join(", "));
        return Err(Box::new((call.name, refusal(text, Some(0.0), ReplyFailure::UnknownTool))));
    }
    match read_arguments(&call.arguments) {
        Ok(arguments) => Ok(ValidCall { written: call, arguments }),
        Err(error) => {
            let text = format!("Invalid JSON in arguments for '{name}': {error}");
            Err(Box::new((call.name, refusal(text, Some(0.0), ReplyFailure::Arguments))))
        }
    }
}
