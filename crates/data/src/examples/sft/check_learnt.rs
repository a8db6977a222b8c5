//! Checks that the texts of learnt messages are in the learnt part of the conversation.

use anyhow::{Result, bail};

use super::probe;
use super::rendered::TurnFinder;
use crate::template::content;

/// Note for a message that the template does not write completely.
const LOSES: &str = "have a learnt message that the chat template does not write completely (some leave out the thoughts of earlier \
                     turns, or tool calls); to train on all of it, use a template that writes it (model.custom_chat_template)";

/// Field names of a message's reasoning.
const THOUGHTS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Searches the texts of message `i` in the learnt text. Returns a note if some of them are missing.
///
/// # Errors
/// If the template does not write the message.
pub(super) fn check(finder: &TurnFinder, i: usize, learnt: &str) -> Result<Option<&'static str>> {
    let message = content::joined(&finder.messages[i]);
    let text = message["content"].as_str().unwrap_or_default();
    let pieces: Vec<&str> = text.split("<think>").flat_map(|piece| piece.split("</think>")).map(str::trim).collect();
    let missing = |piece: &&&str| !piece.is_empty() && !learnt.contains(**piece);
    let lost = pieces.iter().filter(missing).count();
    let has_text = pieces.iter().any(|piece| !piece.is_empty());
    if lost > 0 && pieces.iter().all(|piece| piece.is_empty() || missing(&piece)) && !probe::has_calls(&message) {
        // The template may change the text, such as to upper case.
        if has_text && probe::content(finder, finder.messages, i, &finder.full.text).is_none() {
            bail!(
                "message {i}: the chat template does not write its text, so it would not be learnt; use another template \
                 (model.custom_chat_template)"
            );
        }
    }
    let thoughts = THOUGHTS.iter().find_map(|name| message.get(name)?.as_str()).unwrap_or_default().trim();
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let names = calls.map(|call| call.get("function").unwrap_or(call)["name"].as_str().unwrap_or_default());
    let is_lost = |text: &str| !learnt.contains(text);
    Ok((lost > 0 || is_lost(thoughts) || names.into_iter().any(is_lost)).then_some(LOSES))
}
