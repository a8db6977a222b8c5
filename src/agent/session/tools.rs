//! The tools of a conversation that live in its process.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::conversation::Session;
use super::seen::{fields, number};
use super::setup::{OfferedEnvironment, Offers};
use crate::agent::Trouble;
use crate::agent::parties::Fault;
use crate::agent::tools::{Answer, Call, Seen, Toolbox};

/// The tools of one conversation.
pub struct PythonTools {
    session: Session,
    schemas: Vec<Value>,
    /// The names of tools that give rewards.
    rewarding: HashSet<String>,
    row: ToolsOfRow,
    timeout: Duration,
}

/// What a row says of tools.
#[derive(Clone, Debug, Default)]
pub struct ToolsOfRow {
    /// `extra_info.tools_kwargs`: for each tool `create_kwargs` and so on.
    pub tools_kwargs: Map<String, Value>,
    /// `extra_info.tool_selection`: the tools that the row may use; names that are not offered count for nothing, and none is all.
    pub tool_selection: Vec<String>,
    /// A name of the conversation, which tools see as `request_id`; the same in each run.
    pub request_id: String,
}

impl PythonTools {
    /// The tools that the host of this session offers to a row, and those of its environment; `timeout` is that of the calls of one turn.
    pub fn new(
        session: Session,
        offers: &Offers,
        environment: Option<&OfferedEnvironment>,
        row: ToolsOfRow,
        timeout: Duration,
    ) -> Self {
        let is_selected = |name: &str| row.tool_selection.is_empty() || row.tool_selection.iter().any(|one| one == name);
        let any = offers.tools.iter().any(|tool| is_selected(&tool.name));
        let selected = offers.tools.iter().filter(|tool| !any || is_selected(&tool.name));
        let own = environment.map(|environment| environment.schemas.as_slice()).unwrap_or_default();
        let schemas = selected.map(|tool| &tool.schema).chain(own).cloned().collect();
        let rewarding = offers.tools.iter().filter(|tool| tool.rewards).map(|tool| tool.name.clone()).collect();
        Self { session, schemas, rewarding, row, timeout }
    }

    /// The answer in place of one that a process did not give.
    fn failed(&self, name: &str, fault: &Fault) -> Answer {
        let told = match fault.trouble {
            // Where it hung is for people, not for the model.
            Trouble::Timeout => format!("timed out after {} s", self.timeout.as_secs_f64()),
            Trouble::Died => "its process died".to_owned(),
            _ => fault.message.clone(),
        };
        Answer {
            text: format!("Error executing tool '{name}': {told}"),
            reward: self.rewarding.contains(name).then_some(0.0),
            trouble: Some(fault.trouble),
            seconds: fault.seconds,
            extra: Map::new(),
        }
    }
}

impl Toolbox for PythonTools {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    fn call(&mut self, calls: &[Call], seen: &Seen) -> Result<Vec<Answer>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        // The arguments go as the model wrote them, because numbers may be longer than ours.
        let written: Vec<Value> =
            calls.iter().map(|call| json!({ "name": call.written.name, "arguments": call.written.arguments })).collect();
        let arguments = json!({
            "calls": written,
            "seen": fields(seen),
            "tools_kwargs": self.row.tools_kwargs,
            "request_id": self.row.request_id,
        });
        let begun = Instant::now();
        let mut early: Vec<Option<Answer>> = vec![None; calls.len()];
        let mut keep = |part: Value| {
            let index = part["index"].as_u64().and_then(|index| usize::try_from(index).ok());
            if let Some(place) = index.and_then(|index| early.get_mut(index)) {
                *place = read(&part["answer"]);
            }
        };
        let reply = self.session.ask_in_parts("call", &arguments, self.timeout, &mut keep)?;
        let fault = match reply {
            Ok(mut reply) => {
                let answers: Option<Vec<Answer>> = reply["answers"].as_array().and_then(|list| list.iter().map(read).collect());
                match answers.filter(|answers| answers.len() == calls.len()) {
                    Some(mut answers) => {
                        if let (Some(last), Value::Object(extra)) = (answers.last_mut(), reply["extra"].take()) {
                            last.extra = extra;
                        }
                        return Ok(answers);
                    }
                    None => {
                        let message = "its process answers with what is no answer".to_owned();
                        Fault { trouble: Trouble::Raised, message, seconds: begun.elapsed().as_secs_f64() }
                    }
                }
            }
            Err(fault) => fault,
        };
        let names: Vec<&str> = calls.iter().map(|call| call.written.name.as_str()).collect();
        tracing::debug!("a call of {} failed: {}", names.join(", "), fault.message);
        let answers = names.iter().zip(early).map(|(name, early)| early.unwrap_or_else(|| self.failed(name, &fault)));
        Ok(answers.collect())
    }
}

/// Reads an answer as a process writes it.
fn read(answer: &Value) -> Option<Answer> {
    Some(Answer {
        text: answer["text"].as_str()?.to_owned(),
        reward: number(&answer["reward"]),
        trouble: answer["raised"].is_string().then_some(Trouble::Raised),
        seconds: number(&answer["seconds"])?,
        extra: Map::new(),
    })
}
