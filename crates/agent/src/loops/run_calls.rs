//! Runs tool calls. Calls of unknown tools, or with bad arguments, get an error text here; the others go to the tools. All loops
//! share this code; each words its own error texts.

use std::time::Instant;

use anyhow::Result;
use serde_json::Value;

use super::super::tools::{ToolResult, Toolbox, ValidCall};
use super::super::{CallRecord, ReplyFailure};
use super::episode_record::EpisodeRecord;
use burnish_util::excerpt;

/// The limit in characters of an error text that the model is shown.
const LONGEST_ERROR: usize = 10_000;

/// A call to run, or the name and error text of one that is not run.
pub(crate) type CheckedCall = Result<ValidCall, Box<(String, ToolResult)>>;

/// Returns the error text for a call that is not run.
pub(super) fn refusal(text: String, reward: Option<f64>, failure: ReplyFailure) -> ToolResult {
    ToolResult { text, reward, failure: Some(failure), seconds: 0.0, extra: serde_json::Map::new() }
}

/// Returns the names of tools, in the order of their schemas.
pub(super) fn names(schemas: &[Value]) -> impl Iterator<Item = &str> {
    schemas.iter().filter_map(|schema| schema["function"]["name"].as_str())
}

/// Runs calls and returns their results in the same order. Adds rewards, call records and the tools' extra values to the record.
/// `missing` makes the result of a tool that returns nothing. `cut` shortens a result that is too long, and returns `None` for
/// the others. Error texts are cut too, and have at most [`LONGEST_ERROR`] characters in every loop.
///
/// # Errors
/// Errors that end the run.
pub(crate) fn run_calls(
    record: &mut EpisodeRecord,
    tools: &mut dyn Toolbox,
    calls: Vec<CheckedCall>,
    missing: impl Fn(&str) -> ToolResult,
    cut: impl Fn(&str) -> Option<String>,
) -> Result<Vec<ToolResult>> {
    let names: Vec<String> = calls
        .iter()
        .map(|call| call.as_ref().map_or_else(|refused| refused.0.clone(), |call| call.written.name.clone()))
        .collect();
    let (mut sound, mut refused) = (Vec::new(), Vec::new());
    for call in calls {
        match call {
            Ok(call) => {
                sound.push(call);
                refused.push(None);
            }
            Err(one) => refused.push(Some(one.1)),
        }
    }
    let started = Instant::now();
    let results = if sound.is_empty() { Vec::new() } else { tools.call(&sound, &record.view())? };
    let longest = results.iter().map(|answer| answer.seconds).fold(0.0, f64::max);
    record.waited(started.elapsed().as_secs_f64().max(longest));
    let mut results = results.into_iter();
    let mut answers = Vec::new();
    for (name, refused) in names.into_iter().zip(refused) {
        let is_refused = refused.is_some();
        let mut answer = refused.unwrap_or_else(|| results.next().unwrap_or_else(|| missing(&name)));
        if answer.failure.is_some() {
            answer.text = excerpt::beginning_of(&answer.text, LONGEST_ERROR);
        }
        // The loop itself wrote the text of a refusal.
        let shorter = if is_refused { None } else { cut(&answer.text) };
        record.note_call(CallRecord { name, failure: answer.failure, cut: shorter.is_some(), seconds: answer.seconds });
        if let Some(text) = shorter {
            answer.text = text;
        }
        if let Some(reward) = answer.reward {
            record.reward(reward, true);
        }
        record.leave(std::mem::take(&mut answer.extra));
        answers.push(answer);
    }
    Ok(answers)
}
