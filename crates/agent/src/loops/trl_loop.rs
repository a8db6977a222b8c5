//! TRL 1.16's loop: a model with plain functions, or the methods of an environment, as its tools (`GRPOTrainer._tool_call_loop`).
//!
//! Every call of a turn is run and the model continues, until a turn has no calls, `max_tool_calling_iterations` turns had calls,
//! or results do not fit. Results that do not fit are dropped, and the response ends with the turn that called. Turn limits apply
//! too, if they are set: the turn that reaches one is the last, and its calls are not run. The limits of parallel calls and of
//! result length do not exist in TRL and have no effect here.
//!
//! Differences from TRL:
//! - Results are in the order of the calls. TRL puts the results of asynchronous functions last.
//! - A result is text. TRL passes a list to the template unchanged, which some templates render as nothing.
//! - A turn without a token is not a message. TRL's parser fails on an empty first turn.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::calls::ToolCall;
use super::super::participants::{Outcome, PartyError};
use super::super::tokens::Appended;
use super::super::tools::{ToolResult, Toolbox, ValidCall};
use super::super::{ENVIRONMENT_REWARD, EndReason, Episode, ReplyFailure};
use super::agent_loop::{AgentLoop, NextAction};
use super::episode_record::EpisodeRecord;
use super::run_calls::{CheckedCall, names, refusal, run_calls};
use super::trl_chat::TrlChat;
use burnish_rollout::Response;
use burnish_util::python_value::quoted;

/// Returns the environment's reward for the whole conversation (`get_reward`), or `None`; called once, at the end.
pub type EnvironmentReward = Box<dyn FnMut() -> Outcome<Option<f64>> + Send>;

/// A conversation of a model with functions as its tools.
pub struct TrlLoop {
    record: EpisodeRecord,
    chat: Arc<dyn TrlChat>,
    tools: Box<dyn Toolbox>,
    /// The number of times that calls may still be run; `None` for no limit.
    iterations_left: Option<usize>,
    reward: Option<EnvironmentReward>,
    /// True if the reward of the environment is the score.
    scores: bool,
}

impl TrlLoop {
    /// `max_tool_calling_iterations` is TRL's: `None` means unlimited, 0 forbids calls.
    pub fn new(
        record: EpisodeRecord,
        chat: Arc<dyn TrlChat>,
        tools: Box<dyn Toolbox>,
        max_tool_calling_iterations: Option<usize>,
    ) -> Self {
        Self { record, chat, tools, iterations_left: max_tool_calling_iterations, reward: None, scores: false }
    }

    /// Adds the reward of an environment, stored under `environment_reward` in [`Episode::extra`]. With `scores` it is the score,
    /// and no reward function is called. Otherwise it is the last turn reward, which `algorithm.turn_rewards=sum` adds to the
    /// score of functions, as TRL does.
    pub fn with_reward(self, reward: EnvironmentReward, scores: bool) -> Self {
        Self { reward: Some(reward), scores, ..self }
    }

    /// Takes a turn, and returns the next action.
    fn take_turn(&mut self, turn: Response) -> Result<NextAction> {
        let before = self.record.ids();
        let turn = self.record.take(turn);
        if turn.ids.is_empty() {
            return Ok(self.record.end(EndReason::Answer));
        }
        let message = self.chat.read(&before, &turn.ids, self.tools.schemas())?;
        let calls: Vec<ToolCall> = message.message["tool_calls"].as_array().into_iter().flatten().map(call).collect();
        self.record.note_unreadable(message.unreadable);
        self.record.say(message.message);
        if calls.is_empty() {
            let end = if message.unreadable > 0 { EndReason::UnreadableCall } else { EndReason::Answer };
            return Ok(self.record.end(end));
        }
        if let Some(end) = self.record.turns_reached() {
            return Ok(self.record.end(end));
        }
        match &mut self.iterations_left {
            Some(0) => Ok(self.record.end(EndReason::UserTurns)),
            left => {
                *left = left.map(|left| left - 1);
                self.answer_calls(calls)
            }
        }
    }

    /// Runs the calls of a turn, and continues with their results.
    fn answer_calls(&mut self, calls: Vec<ToolCall>) -> Result<NextAction> {
        let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
        let calls = calls.into_iter().map(|call| checked(call, self.tools.schemas())).collect();
        let missing = |name: &str| error(&format!("Tool {name} gave no answer."), ReplyFailure::Raised);
        let answers = run_calls(&mut self.record, &mut *self.tools, calls, missing, |_| None)?;
        let before = self.record.messages().len();
        for (answer, name) in answers.into_iter().zip(names) {
            self.record.say(json!({"role": "tool", "name": name, "content": answer.text}));
        }
        if let Some(end) = self.record.end_if_late() {
            return Ok(end);
        }
        if self.record.is_beyond(&self.record.messages()[before..]) {
            self.record.unsay(before);
            return Ok(self.record.end(EndReason::ContextTooLong));
        }
        let suffix = self.chat.suffix(&self.record.messages()[before..]).context("the results of tools cannot be appended")?;
        let appended = Appended { remove: 0, ids: suffix };
        let (prompt, response) = self.record.lengths_with(&appended);
        let limits = self.record.limits();
        if response > limits.response_length || limits.max_model_len.is_some_and(|longest| prompt + response >= longest) {
            self.record.unsay(before);
            return Ok(self.record.end(EndReason::ContextTooLong));
        }
        self.record.append(&appended);
        Ok(self.record.ask())
    }
}

impl AgentLoop for TrlLoop {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if self.record.has_ended() {
            return Ok(NextAction::End);
        }
        let Some(turn) = turn else { return Ok(self.record.ask()) };
        let next = self.take_turn(turn)?;
        let Some(reward) = self.reward.as_mut().filter(|_| next == NextAction::End && !self.record.has_failed()) else {
            return Ok(next);
        };
        match reward()? {
            Ok(Some(reward)) => {
                self.record.extra.insert(ENVIRONMENT_REWARD.to_owned(), reward.into());
                match self.scores {
                    true => self.record.score = Some(reward),
                    false => self.record.reward(reward, false),
                }
            }
            Ok(None) if self.scores => drop(self.record.fault(no_reward())),
            Ok(None) => {}
            Err(error) => drop(self.record.fault(error)),
        }
        Ok(next)
    }

    fn finish(mut self: Box<Self>) -> Episode {
        self.record.tools = self.tools.schemas().to_vec();
        self.record.episode()
    }
}

/// Returns the error of an environment that must score the conversation, but returned no reward.
fn no_reward() -> PartyError {
    let message = "get_reward of the environment returned None, and there is no other reward".to_owned();
    PartyError { failure: ReplyFailure::Raised, message, seconds: 0.0 }
}

/// Reads a call from a message.
fn call(written: &Value) -> ToolCall {
    let function = &written["function"];
    ToolCall {
        id: written["id"].as_str().map(str::to_owned),
        name: function["name"].as_str().unwrap_or_default().to_owned(),
        arguments: function["arguments"].to_string(),
    }
}

/// Returns the call if the tool exists; otherwise the error text for the model.
fn checked(call: ToolCall, schemas: &[Value]) -> CheckedCall {
    if !names(schemas).any(|known| known == call.name) {
        let answer = error(&format!("Tool {} not found.", call.name), ReplyFailure::UnknownTool);
        return Err(Box::new((call.name, answer)));
    }
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
    Ok(ValidCall { written: call, arguments })
}

/// Returns an error in TRL's wording: `str({"error": message})`.
fn error(message: &str, failure: ReplyFailure) -> ToolResult {
    refusal(format!("{{'error': {}}}", quoted(message)), None, failure)
}
