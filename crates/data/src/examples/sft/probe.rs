//! Probes: renders a conversation with other texts in a message. The changed part of the rendering is the message.

use std::ops::Range;

use serde_json::Value;

use super::rendered::TurnFinder;
use crate::examples::prompt_boundary::alike;

/// Field of a message's tool calls.
const CALLS: &str = "tool_calls";

/// Two texts with different first and last characters, so at each end at least one of them differs from the message.
const TEXTS: [&str; 2] = ["a", "b"];

/// The position of a message in a text, in bytes.
#[derive(Clone, Debug)]
pub(super) struct MessagePlace {
    /// Range of the message's text, or of its tool calls if the template writes nothing else.
    pub content: Range<usize>,
    /// End of the whole message.
    pub end: usize,
}

/// Returns the position of message `i` in `text`, the rendering of `messages`; `None` if the template does not write it.
pub(super) fn place(finder: &TurnFinder, messages: &[Value], i: usize, text: &str) -> Option<MessagePlace> {
    let of = |make: fn(&Value, &str) -> Option<Value>| changed(finder, messages, i, text, make);
    let content = of(with_text);
    let calls = has_calls(&messages[i]).then(|| of(with_only_text)).flatten();
    let range = content.clone().or(calls.clone())?;
    let end = [content, calls].into_iter().flatten().map(|range| range.end).max()?;
    Some(MessagePlace { content: range, end })
}

/// Returns the range of a text that changes with the content of message `i`; `None` if the template does not write it.
pub(super) fn content(finder: &TurnFinder, messages: &[Value], i: usize, text: &str) -> Option<Range<usize>> {
    changed(finder, messages, i, text, with_text)
}

/// Returns true if the message calls tools.
pub(super) fn has_calls(message: &Value) -> bool {
    message.get(CALLS).and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
}

/// Returns the range of `text` that differs from two renderings with other texts in message `i`.
fn changed(
    finder: &TurnFinder,
    messages: &[Value],
    i: usize,
    text: &str,
    make: fn(&Value, &str) -> Option<Value>,
) -> Option<Range<usize>> {
    let render = |text| {
        let mut messages = messages.to_vec();
        messages[i] = make(&messages[i], text)?;
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

/// Returns the number of bytes in the common end of two texts.
pub(super) fn alike_behind(a: &str, b: &str) -> usize {
    a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
}

/// Returns a message with another text as content; `None` if the content is not text or parts.
fn with_text(message: &Value, text: &str) -> Option<Value> {
    let mut message = message.clone();
    let content = match message.get("content") {
        None | Some(Value::Null | Value::String(_)) => Value::from(text),
        // A list of parts stays a list, since templates write lists and texts differently.
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

/// Returns a message with another text and without tool calls.
fn with_only_text(message: &Value, text: &str) -> Option<Value> {
    let mut message = with_text(message, text)?;
    message.as_object_mut()?.shift_remove(CALLS);
    Some(message)
}

/// Returns the rendered text before the content of message `i`; `None` if the content is not text or is not written.
pub(super) fn header(finder: &TurnFinder, i: usize) -> Option<String> {
    let render = |text| {
        let mut messages = finder.messages.to_vec();
        messages[i] = with_text(&messages[i], text)?;
        finder.render(messages, false).ok()
    };
    let [one, other] = [render(TEXTS[0])?, render(TEXTS[1])?];
    (one != other).then(|| alike(&one, &other).to_owned())
}
