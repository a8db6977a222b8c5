//! The Python tools of a conversation, which live in its process.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::conversation::{Session, TimeLimit};
use super::setup::{OfferedEnvironment, Offers};
use super::view::{fields, number};
use crate::ReplyFailure;
use crate::participants::PartyError;
use crate::tools::{ConversationView, ToolResult, Toolbox, ValidCall};

/// The tools of one conversation.
pub struct PythonTools {
    session: Session,
    schemas: Vec<Value>,
    /// The names of tools that give rewards.
    rewarding: HashSet<String>,
    row: RowTools,
    timeout: Duration,
}

/// The tool settings of a row.
#[derive(Clone, Debug, Default)]
pub struct RowTools {
    /// `extra_info.tools_kwargs`: `create_kwargs` and so on for each tool.
    pub tools_kwargs: Map<String, Value>,
    /// `extra_info.tool_selection`: the tools that the row may use. Unknown names are ignored; an empty list allows all tools.
    pub tool_selection: Vec<String>,
    /// The name of the conversation, which tools get as `request_id`; the same in each run.
    pub request_id: String,
}

impl PythonTools {
    /// Creates the tools that the session's host offers to a row, including the tools of its environment. `timeout` is the time
    /// limit of one call.
    pub fn new(
        session: Session,
        offers: &Offers,
        environment: Option<&OfferedEnvironment>,
        row: RowTools,
        timeout: Duration,
    ) -> Self {
        let is_selected = |name: &str| row.tool_selection.is_empty() || row.tool_selection.iter().any(|one| one == name);
        let any = offers.tools.iter().any(|tool| is_selected(&tool.name));
        let selected = offers.tools.iter().filter(|tool| !any || is_selected(&tool.name));
        let environment_schemas = environment.map(|environment| environment.schemas.as_slice()).unwrap_or_default();
        let schemas = selected.map(|tool| &tool.schema).chain(environment_schemas).cloned().collect();
        let rewarding = offers.tools.iter().filter(|tool| tool.rewards).map(|tool| tool.name.clone()).collect();
        Self { session, schemas, rewarding, row, timeout }
    }

    /// Returns the result for a call that the process did not finish.
    fn failed(&self, name: &str, error: &PartyError, failure: ReplyFailure) -> ToolResult {
        let message = match error.failure {
            // The place where the tool hung is of no use to the model.
            ReplyFailure::Timeout => format!("timed out after {} s", self.timeout.as_secs_f64()),
            ReplyFailure::Died => "its process died".to_owned(),
            _ => error.message.clone(),
        };
        ToolResult {
            text: format!("Error executing tool '{name}': {message}"),
            reward: self.rewarding.contains(name).then_some(0.0),
            failure: Some(failure),
            seconds: error.seconds,
            extra: Map::new(),
        }
    }
}

impl Toolbox for PythonTools {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    fn call(&mut self, calls: &[ValidCall], view: &ConversationView) -> Result<Vec<ToolResult>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers: Vec<Option<ToolResult>> = vec![None; calls.len()];
        loop {
            let open: Vec<usize> = (0..calls.len()).filter(|at| answers[*at].is_none()).collect();
            if open.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
            self.run_calls(calls, view, &open, &mut answers)?;
        }
    }
}

/// The progress of a call.
#[derive(Clone, Default)]
struct Progress {
    started: Option<Instant>,
    answer: Option<ToolResult>,
}

impl PythonTools {
    /// Runs the `open` calls, and stores the result of at least one. Calls that had not begun when their process ended stay open.
    fn run_calls(
        &self,
        calls: &[ValidCall],
        view: &ConversationView,
        open: &[usize],
        answers: &mut [Option<ToolResult>],
    ) -> Result<()> {
        // Arguments are sent as the model wrote them, because Python supports larger numbers.
        let written = open.iter().map(|at| &calls[*at].written);
        let written: Vec<Value> = written.map(|call| json!({ "name": call.name, "arguments": call.arguments })).collect();
        let arguments = json!({
            "calls": written,
            "seen": fields(view),
            "tools_kwargs": self.row.tools_kwargs,
            "request_id": self.row.request_id,
        });
        let (started, last) = (Instant::now(), Cell::new(Instant::now()));
        let mut progress = vec![Progress::default(); open.len()];
        let mut note = |part: Value| {
            last.set(Instant::now());
            let index = part["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            let Some(place) = index.and_then(|index| progress.get_mut(index)) else { return };
            place.started = place.started.or(Some(last.get()));
            place.answer = read(&part["answer"]);
        };
        let time = TimeLimit::Each { limit: self.timeout, count: open.len(), last: &last };
        let error = match self.session.ask_in_parts("call", &arguments, time, &mut note)? {
            Ok(mut reply) => {
                let all: Option<Vec<ToolResult>> = reply["answers"].as_array().and_then(|list| list.iter().map(read).collect());
                match all.filter(|all| all.len() == open.len()) {
                    Some(mut all) => {
                        if let (Some(last), Value::Object(extra)) = (all.last_mut(), reply["extra"].take()) {
                            last.extra = extra;
                        }
                        for (at, answer) in open.iter().zip(all) {
                            answers[*at] = Some(answer);
                        }
                        return Ok(());
                    }
                    None => {
                        let message = "its process returned an invalid result".to_owned();
                        PartyError { failure: ReplyFailure::Raised, message, seconds: started.elapsed().as_secs_f64() }
                    }
                }
            }
            Err(error) => error,
        };
        let names: Vec<&str> = open.iter().map(|at| calls[*at].written.name.as_str()).collect();
        tracing::debug!("a call of {} failed: {}", names.join(", "), error.message);
        let is_known = progress.iter().any(|one| one.started.is_some());
        let is_late = |one: &Progress| one.started.is_some_and(|started| started.elapsed() >= self.timeout);
        let any_late = progress.iter().any(|one| one.answer.is_none() && is_late(one));
        for ((at, name), one) in open.iter().zip(names).zip(progress) {
            let ended_along = error.failure == ReplyFailure::Timeout && any_late && !is_late(&one);
            answers[*at] = match one {
                Progress { answer: Some(answer), .. } => Some(answer),
                Progress { started: None, .. } if is_known => None,
                _ if ended_along => {
                    let message = "its process was ended, because another call of the turn took too long".to_owned();
                    Some(self.failed(
                        name,
                        &PartyError { failure: ReplyFailure::Raised, message, ..error.clone() },
                        ReplyFailure::Died,
                    ))
                }
                _ => Some(self.failed(name, &error, error.failure)),
            };
        }
        Ok(())
    }
}

/// Parses a result of the process.
fn read(answer: &Value) -> Option<ToolResult> {
    Some(ToolResult {
        text: answer["text"].as_str()?.to_owned(),
        reward: number(&answer["reward"]),
        failure: answer["raised"].is_string().then_some(ReplyFailure::Raised),
        seconds: number(&answer["seconds"])?,
        extra: Map::new(),
    })
}
