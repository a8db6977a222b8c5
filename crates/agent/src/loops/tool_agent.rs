//! A model with tools, and perhaps a simulated user (verl's `tool_agent`): the loop of verl 0.9.1, with the users of verl 0.7.
//!
//! A turn is sampled. If it reaches a bound, the conversation ends with it: its calls are not carried out. If it has calls, their answers
//! are appended and the model goes on; if it has none, the user answers, or the conversation ends. The response always ends with a sampled
//! token.
//!
//! Where it differs from verl:
//! - The messages have every turn of the model, also one that reached a bound, and all of its calls, also the ones that are not carried
//!   out. As in TRL they have no special tokens, and no answers that did not fit. verl's reward functions see no messages.
//! - What a user says to end the conversation is in the messages and not in the tokens; what a user says is appended only if it fits, as
//!   the answers of tools are. verl 0.7 appends both, so that the response ends with tokens that are not trained.
//! - With [`ToolAgent::tells_unreadable`] a model whose calls cannot be read is told so and goes on. verl takes such a turn for the answer,
//!   which is the default here too, with an end of its own ([`End::UnreadableCall`]).
//! - What reaches the length of the model ends the conversation as what reaches that of the response does; verl's engine fails then.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::calls::{Parsed, ToolCall};
use super::super::parties::User;
use super::super::tools::{Call, Seen, Toolbox, truncated};
use super::super::{End, Episode, Trouble};
use super::agent_loop::{AgentLoop, Next};
use super::arguments::read_arguments;
use super::carry_out::{Checked, carry_out, names, refusal};
use super::chat::Chat;
use super::record::Record;
use burnish_rollout::Response;
use burnish_util::python_value::quoted;

/// What a model is told whose calls cannot be read.
const UNREADABLE: &str =
    "The call of a tool in your last message could not be read. Write it again in the form that you were shown.";

/// A conversation of a model with tools, and perhaps a user.
pub struct ToolAgent {
    record: Record,
    chat: Arc<dyn Chat>,
    tools: Box<dyn Toolbox>,
    user: Option<Box<dyn User>>,
    /// With a user: the places of messages with calls, and the whole texts of their turns.
    texts: Vec<(usize, String)>,
    tells_unreadable: bool,
}

impl ToolAgent {
    pub fn new(record: Record, chat: Arc<dyn Chat>, tools: Box<dyn Toolbox>) -> Self {
        Self { record, chat, tools, user: None, texts: Vec::new(), tells_unreadable: false }
    }

    /// Adds a user, who answers turns without calls.
    pub fn with_user(self, user: Box<dyn User>) -> Self {
        Self { user: Some(user), ..self }
    }

    /// Whether a model is told that none of its calls could be read, and goes on.
    pub fn tells_unreadable(self, tells_unreadable: bool) -> Self {
        Self { tells_unreadable, ..self }
    }

    /// Records the message of a turn of the model.
    fn say(&mut self, ids: &[u32], parsed: &Parsed) -> Result<()> {
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

    /// Has the calls of a turn carried out, and continues with their answers.
    fn answer_calls(&mut self, calls: Vec<ToolCall>) -> Result<Next> {
        let ids: Vec<Option<String>> = calls.iter().map(|call| call.id.clone()).collect();
        let calls = calls.into_iter().map(|call| checked(call, self.tools.schemas())).collect();
        let (longest, side) = (self.record.limits().max_tool_response_length, self.record.limits().truncate);
        let answers = carry_out(
            &mut self.record,
            &mut *self.tools,
            calls,
            |name| refusal(format!("Error executing tool '{name}': it gave no answer"), Some(0.0), Trouble::Raised),
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
        self.go_on(messages)
    }

    /// Lets the user answer.
    fn answer_by_user(&mut self) -> Result<Next> {
        let Some(user) = &mut self.user else { return Ok(self.record.end(End::Answer)) };
        let begun = Instant::now();
        let seen = self.record.seen();
        let messages = with_texts(seen.messages, &self.texts);
        let reply = match user.respond(&Seen { messages: &messages, ..seen })? {
            Ok(reply) => reply,
            Err(fault) => return Ok(self.record.fault(fault)),
        };
        self.record.waited(begun.elapsed().as_secs_f64().max(reply.seconds));
        if let Some(score) = reply.score {
            self.record.reward(score, false);
        }
        let message = json!({"role": "user", "content": reply.text});
        if reply.ends {
            self.record.say(message);
            self.record.count_user_turn();
            return Ok(self.record.end(End::Done));
        }
        self.go_on(vec![message])
    }

    /// Continues with messages to the model.
    fn go_on(&mut self, new: Vec<Value>) -> Result<Next> {
        let history = self.record.messages().len();
        for message in new {
            self.record.say(message);
        }
        if let Some(end) = self.record.end_if_late() {
            return Ok(end);
        }
        if self.record.is_beyond(&self.record.messages()[history..]) {
            self.record.unsay(history);
            return Ok(self.record.end(End::ContextTooLong));
        }
        let (before, new) = self.record.messages().split_at(history);
        let appended = self.chat.append(&carried_out(before, new), &self.record.ids(), new);
        let appended = appended.context("the messages to the model cannot be appended")?;
        Ok(self.record.append_if_fits(&appended, history))
    }
}

impl AgentLoop for ToolAgent {
    fn next(&mut self, turn: Option<Response>) -> Result<Next> {
        if self.record.has_ended() {
            return Ok(Next::End);
        }
        let Some(turn) = turn else { return Ok(self.record.ask()) };
        let turn = self.record.take(turn);
        let mut parsed = self.chat.read(&turn.ids, self.tools.schemas())?;
        self.say(&turn.ids, &parsed)?;
        if let Some(end) = self.record.bound_reached() {
            return Ok(self.record.end(end));
        }
        self.record.note_unreadable(parsed.unreadable);
        let carried_out = parsed.calls.len().min(self.record.limits().max_parallel_calls.max(1));
        self.record.note_dropped(parsed.calls.len() - carried_out);
        parsed.calls.truncate(carried_out);
        if !parsed.calls.is_empty() {
            self.answer_calls(parsed.calls)
        } else if parsed.unreadable > 0 && self.tells_unreadable {
            self.go_on(vec![json!({"role": "user", "content": UNREADABLE})])
        } else if parsed.unreadable > 0 && self.user.is_none() {
            Ok(self.record.end(End::UnreadableCall))
        } else {
            self.answer_by_user()
        }
    }

    fn finish(mut self: Box<Self>) -> Episode {
        self.record.tools = self.tools.schemas().to_vec();
        self.record.episode()
    }
}

/// The messages as users see them: as with verl 0.7, the text of a turn has its calls too.
fn with_texts<'a>(messages: &'a [Value], texts: &[(usize, String)]) -> Cow<'a, [Value]> {
    let mut shown = Cow::Borrowed(messages);
    for (at, text) in texts {
        shown.to_mut()[*at]["content"] = text.as_str().into();
    }
    shown
}

/// The messages before answers of tools, of whose last the calls without an answer are left out: templates find the call of an answer by its
/// place.
fn carried_out<'a>(before: &'a [Value], answers: &[Value]) -> Cow<'a, [Value]> {
    let calls = before.last().and_then(|message| message.get("tool_calls")?.as_array()).map_or(0, Vec::len);
    let mut before = Cow::Borrowed(before);
    if calls > answers.len()
        && let Some(Value::Array(calls)) = before.to_mut().last_mut().and_then(|message| message.get_mut("tool_calls"))
    {
        calls.truncate(answers.len());
    }
    before
}

/// A call in the message of a turn: arguments that are no JSON object stay the text they are.
fn call_message(call: &ToolCall) -> Value {
    let arguments = read_arguments(&call.arguments).ok().filter(Value::is_object);
    let arguments = arguments.unwrap_or_else(|| call.arguments.clone().into());
    let mut message = json!({"type": "function", "function": {"name": call.name, "arguments": arguments}});
    if let Some(id) = &call.id {
        message["id"] = id.clone().into();
    }
    message
}

/// A call, if there is such a tool and the arguments are JSON of any kind; else what the model is told, with verl's reward of 0.
fn checked(call: ToolCall, schemas: &[Value]) -> Checked {
    let name = &call.name;
    if !names(schemas).any(|known| known == name) {
        let known: Vec<String> = names(schemas).map(quoted).collect();
        let text = format!("Unknown function '{name}'. Available tools: [{}]", known.join(", "));
        return Err(Box::new((call.name, refusal(text, Some(0.0), Trouble::UnknownTool))));
    }
    match read_arguments(&call.arguments) {
        Ok(arguments) => Ok(Call { written: call, arguments }),
        Err(error) => {
            let text = format!("Invalid JSON in arguments for '{name}': {error}");
            Err(Box::new((call.name, refusal(text, Some(0.0), Trouble::Arguments))))
        }
    }
}
