//! A check that the texts of learnt messages are in the learnt part of the conversation.

use anyhow::{Result, bail};

use super::probe;
use super::rendered::TurnFinder;
use crate::template::content;

/// The note of a message that the template does not write in full.
const LOSES: &str = "have a message that is trained on and not written in full by the chat template (some leave out the thoughts of \
                     earlier turns, or calls of tools); to train on all of it, give a template that writes it (model.custom_chat_template)";

/// The fields of a message's thoughts.
const THOUGHTS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Looks for the texts of message `i` in what is learnt. Returns a note if some of them are not there as the row has them.
///
/// # Errors
/// If the template writes nothing of the message.
pub(super) fn check(finder: &TurnFinder, i: usize, learnt: &str) -> Result<Option<&'static str>> {
    let message = content::joined(&finder.messages[i]);
    let said = message["content"].as_str().unwrap_or_default();
    let pieces: Vec<&str> = said.split("<think>").flat_map(|piece| piece.split("</think>")).map(str::trim).collect();
    let missing = |piece: &&&str| !piece.is_empty() && !learnt.contains(**piece);
    let lost = pieces.iter().filter(missing).count();
    let has_text = pieces.iter().any(|piece| !piece.is_empty());
    if lost > 0 && pieces.iter().all(|piece| piece.is_empty() || missing(&piece)) && !probe::has_calls(&message) {
        // The template may write it otherwise, in capital letters perhaps.
        if has_text && probe::content(finder, finder.messages, i, &finder.whole.text).is_none() {
            bail!(
                "message {i}: the chat template writes nothing of its text, so nothing of it would be learnt; give another template \
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
