//! A custom loop in the process of its conversation (verl's agent loops). The process sends the loop's requests as replies; the
//! next request brings the result.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use super::conversation::Session;
use super::view::number;
use crate::ReplyFailure;
use crate::participants::{LoopCode, LoopOutput, LoopRequest, Outcome, PartyError};

/// An agent loop of verl.
pub struct PythonLoop {
    session: Session,
    row: LoopArguments,
    timeout: Duration,
    /// The time that the code has taken since the model's last turn.
    elapsed: Duration,
}

/// The arguments of a loop.
#[derive(Clone, Debug, Serialize)]
pub struct LoopArguments {
    /// The name of the loop.
    pub name: String,
    /// verl's `sampling_params`.
    pub sampling_params: Map<String, Value>,
    /// The arguments of `run`.
    pub row: Map<String, Value>,
    /// Attributes of the tokenizer, such as `eos_token_id`.
    pub tokenizer: Value,
    /// The name of the conversation, the same in each run; the code's random numbers depend on it.
    pub request_id: String,
}

impl PythonLoop {
    /// Creates a loop; `timeout` limits its code between two turns of the model.
    pub fn new(session: Session, row: LoopArguments, timeout: Duration) -> Self {
        Self { session, row, timeout, elapsed: Duration::ZERO }
    }
}

impl LoopCode for PythonLoop {
    fn resume(&mut self, answer: Option<Value>) -> Outcome<LoopRequest> {
        let started = Instant::now();
        let reply = match &answer {
            None => self.session.ask("loop", &self.row, self.timeout)?,
            Some(answer) => self.session.ask("answer", answer, self.timeout)?,
        };
        // The first request also waits for its process to start, which has its own limit.
        self.elapsed += if answer.is_some() { started.elapsed() } else { Duration::ZERO };
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        let seconds = started.elapsed().as_secs_f64();
        let request = if let Some(request_fields) = reply.get_mut("tokenize") {
            if self.elapsed > self.timeout {
                let max = self.timeout.as_secs_f64();
                let message = format!("it requested no turn within the {max} s of agent.call_timeout, only tokens");
                return Ok(Err(PartyError { failure: ReplyFailure::Timeout, message, seconds }));
            }
            Some(LoopRequest::Tokens(request_fields.take()))
        } else if let Some(request_fields) = reply.get("generate") {
            self.elapsed = Duration::ZERO;
            let params = request_fields["sampling_params"].as_object().cloned().unwrap_or_default();
            ids(&request_fields["prompt_ids"]).map(|ids| LoopRequest::Turn { ids, params })
        } else {
            match reply["done"].as_array().map(Vec::as_slice) {
                Some([output]) => read(output).map(LoopRequest::Done),
                Some(outputs) => {
                    let message = format!(
                        "its run returned {} outputs: return one, because one response to a prompt is trained",
                        outputs.len()
                    );
                    return Ok(Err(PartyError { failure: ReplyFailure::Raised, message, seconds }));
                }
                None => None,
            }
        };
        Ok(request.ok_or_else(|| {
            let message = format!("its ids are not token ids: {}", shortened(&reply.to_string()));
            PartyError { failure: ReplyFailure::Raised, message, seconds }
        }))
    }
}

/// Parses an output of the process.
fn read(output: &Value) -> Option<LoopOutput> {
    let mask = output["response_mask"].as_array()?.iter().map(|mask| match mask.as_u64() {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    });
    let score = &output["reward_score"];
    Some(LoopOutput {
        prompt: ids(&output["prompt_ids"])?,
        ids: ids(&output["response_ids"])?,
        mask: mask.collect::<Option<_>>()?,
        score: if score.is_null() { None } else { Some(number(score)?) },
        num_turns: output["num_turns"].as_u64().and_then(|turns| usize::try_from(turns).ok()).filter(|turns| *turns > 0),
        extra: output["extra_fields"].as_object().cloned().unwrap_or_default(),
    })
}

fn ids(list: &Value) -> Option<Vec<u32>> {
    list.as_array()?.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect()
}

/// Returns the beginning of a text, for a message.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_read() {
        let mut output = json!({"prompt_ids": [1], "response_ids": [2, 3], "response_mask": [1, 0], "reward_score": null,
            "num_turns": 0, "metrics": {}, "extra_fields": {"a": 1}});
        let full = read(&output).unwrap();
        assert_eq!((full.mask, full.score, full.num_turns), (vec![true, false], None, None));
        output["reward_score"] = json!("nan");
        assert!(read(&output).unwrap().score.unwrap().is_nan());
        for (field, wrong) in [("response_mask", json!([1, 2])), ("response_ids", json!([-1])), ("prompt_ids", json!(["a"]))] {
            let output =
                Value::Object(output.as_object().unwrap().clone().into_iter().chain([(field.to_owned(), wrong)]).collect());
            assert!(read(&output).is_none(), "{field}");
        }
    }
}
