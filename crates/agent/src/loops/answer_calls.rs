//! Runs the tool calls of a message outside of an episode, as `tool_agent` does.

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::calls::ToolCall;
use super::super::tools::{ConversationView, ToolResult, Toolbox, ValidCall, truncated};
use super::super::{ConversationLimits, TruncateSide};
use super::tool_agent::checked;

/// Runs the calls of a message, and returns the texts for the model in the same order. `messages` are those before the results.
/// A call of an unknown tool, or with wrong arguments, gets an error text.
///
/// # Errors
/// Errors that end a run.
pub fn answer_calls(
    tools: &mut dyn Toolbox,
    calls: &[ToolCall],
    messages: &[Value],
    limits: &ConversationLimits,
) -> Result<Vec<String>> {
    let checked: Vec<_> = calls.iter().map(|call| checked(call.clone(), tools.schemas())).collect();
    let sound: Vec<_> = checked.iter().flatten().cloned().collect();
    let view = ConversationView { messages, ..ConversationView::EMPTY };
    let results = if sound.is_empty() { Vec::new() } else { tools.call(&sound, &view)? };
    let mut results = results.into_iter();
    let (longest, side): (usize, TruncateSide) = (limits.max_tool_response_length, limits.truncate);
    let text = |call: Result<ValidCall, Box<(String, ToolResult)>>| match call {
        Ok(_) => {
            let result = results.next().context("a toolbox has fewer results than calls")?;
            Ok(truncated(&result.text, longest, side).into_owned())
        }
        Err(refused) => Ok(refused.1.text),
    };
    checked.into_iter().map(text).collect()
}
