//! Probes: a conversation is rendered with other texts in the place of a message's, and what changes shows where the template
//! writes it.

use std::ops::Range;

use serde_json::Value;

use super::rendered::TurnFinder;
use crate::examples::prompt_boundary::alike;

/// The field of a message's calls of tools.
const CALLS: &str = "tool_calls";

/// Two texts that begin and end differently: whatever a message says, one of the two differs from it at each end.
const TEXTS: [&str; 2] = ["a", "b"];

/// The place of a message in a text, in bytes.
#[derive(Clone, Debug)]
pub(super) struct MessagePlace {
    /// The text of the message; its calls of tools, if the template writes nothing else of it.
    pub said: Range<usize>,
    /// The end of all that it has.
    pub end: usize,
}

/// Where message `i` is in `text`, which is what the template makes of `messages`; `None` if the template writes nothing of it.
pub(super) fn place(finder: &TurnFinder, messages: &[Value], i: usize, text: &str) -> Option<MessagePlace> {
    let of = |make: fn(&Value, &str) -> Option<Value>| changed(finder, messages, i, text, make);
    let content = of(saying);
    let calls = has_calls(&messages[i]).then(|| of(saying_only)).flatten();
    let said = content.clone().or(calls.clone())?;
    let end = [content, calls].into_iter().flatten().map(|range| range.end).max()?;
    Some(MessagePlace { said, end })
}

/// Returns the part of a text that changes with the content of message `i`; `None` if the template does not write it.
pub(super) fn content(finder: &TurnFinder, messages: &[Value], i: usize, text: &str) -> Option<Range<usize>> {
    changed(finder, messages, i, text, saying)
}

/// Returns true if the message calls tools.
pub(super) fn has_calls(message: &Value) -> bool {
    message.get(CALLS).and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// Returns the part of a text in which it differs from both of two others, which have other texts in the place of a message.
fn changed(
    finder: &TurnFinder,
    messages: &[Value],
    i: usize,
    text: &str,
    make: fn(&Value, &str) -> Option<Value>,
) -> Option<Range<usize>> {
    let render = |said| {
        let mut messages = messages.to_vec();
        messages[i] = make(&messages[i], said)?;
        finder.render(messages, false).ok()
    };
    let [one, other] = [render(TEXTS[0])?, render(TEXTS[1])?];
    if one == other {
        return None;
    }
    let begin = alike(text, &one).len().min(alike(text, &other).len());
    let behind = alike_behind(text, &one).min(alike_behind(text, &other));
    Some(begin..begin.max(text.len() - behind))
}

/// Returns the number of bytes that two texts end with alike.
pub(super) fn alike_behind(a: &str, b: &str) -> usize {
    a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
}

/// Returns a message with another text in the place of its content; `None` if its content is something else than text.
fn saying(message: &Value, text: &str) -> Option<Value> {
    let mut message = message.clone();
    let content = match message.get("content") {
        None | Some(Value::Null | Value::String(_)) => Value::from(text),
        // It keeps its form, for templates write a list of parts otherwise than a text.
        Some(Value::Array(parts)) => {
            let mut part = parts.first()?.clone();
            let place = if part.is_string() { &mut part } else { part.get_mut("text")? };
            *place = text.into();
            vec![part].into()
        }
        Some(_) => return None,
    };
    message.as_object_mut()?.insert("content".to_owned(), content);
    Some(message)
}

/// Returns a message that says another text, and calls no tool.
fn saying_only(message: &Value, text: &str) -> Option<Value> {
    let mut message = saying(message, text)?;
    message.as_object_mut()?.shift_remove(CALLS);
    Some(message)
}

/// Returns the text that the template writes before any text of message `i` in the whole conversation; `None` if the content is
/// not text, or is not written.
pub(super) fn header(finder: &TurnFinder, i: usize) -> Option<String> {
    let render = |said| {
        let mut messages = finder.messages.to_vec();
        messages[i] = saying(&messages[i], said)?;
        finder.render(messages, false).ok()
    };
    let [one, other] = [render(TEXTS[0])?, render(TEXTS[1])?];
    (one != other).then(|| alike(&one, &other).to_owned())
}
