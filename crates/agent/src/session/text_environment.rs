//! A text environment in the process of its conversation (OpenRLHF's agent instances).

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::conversation::Session;
use super::view::number;
use crate::ReplyFailure;
use crate::participants::{EnvironmentStep, Outcome, PartyError, TextEnvironment};

/// An agent instance of OpenRLHF.
pub struct PythonTextEnvironment {
    session: Session,
    sampling_params: Map<String, Value>,
    timeout: Duration,
}

impl PythonTextEnvironment {
    /// Creates an instance of the host's agent class. `sampling_params`, including `max_tokens`, are passed to its steps under
    /// this name.
    pub fn new(session: Session, sampling_params: Map<String, Value>, timeout: Duration) -> Self {
        Self { session, sampling_params, timeout }
    }
}

impl TextEnvironment for PythonTextEnvironment {
    fn reset(&mut self, observation: &str, label: &Value) -> Outcome<String> {
        let started = Instant::now();
        let reply = self.session.ask("agent_reset", &json!({ "observation": observation, "label": label }), self.timeout)?;
        Ok(reply.and_then(|reply| reply["observation"].as_str().map(str::to_owned).ok_or_else(|| no_answer(started))))
    }

    fn step(&mut self, observation: &str, action: &str) -> Outcome<EnvironmentStep> {
        let started = Instant::now();
        let arguments = json!({ "observation": observation, "action": action, "sampling_params": self.sampling_params });
        let reply = match self.session.ask("agent_step", &arguments, self.timeout)? {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        let max_tokens = reply["max_tokens"].as_u64();
        let default_max = self.sampling_params.get("max_tokens").and_then(Value::as_u64);
        let seconds = started.elapsed().as_secs_f64();
        let step = || {
            Some(EnvironmentStep {
                reward: number(&reply["reward"])?,
                score: number(&reply["score"]),
                feedback: reply["feedback"].as_str()?.to_owned(),
                done: reply["done"].as_bool()?,
                max_tokens: max_tokens.filter(|max| Some(*max) != default_max).and_then(|max| usize::try_from(max).ok()),
                extra: reply["extra"].as_object()?.clone(),
                seconds,
            })
        };
        Ok(step().ok_or_else(|| no_answer(started)))
    }
}

fn no_answer(started: Instant) -> PartyError {
    let message = "the agent returned an invalid value".to_owned();
    PartyError { failure: ReplyFailure::Raised, message, seconds: started.elapsed().as_secs_f64() }
}
