//! Extraction of the answer from a response.

use super::python::{after, before, is_digit, rfind_lower, strip};

/// Phrases before an answer, and below phrases after one. They are searched in this order, each in the text that the earlier ones
/// left.
const OPENINGS: [&str; 3] = ["answer:", "answer is", "answers are"];
const CLOSINGS: [&str; 4] = ["is answer", "is the answer", "are answers", "are the answers"];
/// Last words before an answer. They are searched after everything behind the last full stop is removed.
const LEADS: [&str; 11] = ["be ", "is ", "are ", "=", ": ", "get ", "be\n", "is\n", "are\n", ":\n", "get\n"];

/// Returns the answer in `response`; the whole response if it has no marked answer.
pub fn answer(response: &str) -> String {
    matched_answer(response).1
}

/// Returns the [`answer`], and true if something marks it and it has a digit.
pub(crate) fn matched_answer(response: &str) -> (bool, String) {
    let (mut rest, mut is_marked) = (response, false);
    let past_last = |rest: &mut &str, marker: &str| {
        let at = rfind_lower(rest, marker);
        *rest = at.map_or(*rest, |at| strip(after(rest, at + marker.len())));
        at.is_some()
    };
    for opening in OPENINGS {
        is_marked |= past_last(&mut rest, opening);
    }
    for closing in CLOSINGS {
        if let Some(at) = rfind_lower(rest, closing) {
            (rest, is_marked) = (strip(before(rest, at)), true);
        }
    }
    if let Some(boxed) = last_boxed(rest).filter(|boxed| !boxed.is_empty()) {
        (rest, is_marked) = (boxed, true);
    }
    // This reduces "3. 5" to "3", as in verl.
    if let Some(stop) = rfind_lower(rest, ". ") {
        rest = strip(before(rest, stop));
    }
    for lead in LEADS {
        is_marked |= past_last(&mut rest, lead);
    }
    (is_marked && rest.chars().any(is_digit), rest.to_owned())
}

/// Returns the content of the braces after the last `\boxed`, or else after the last `\fbox`. A closing brace before the first
/// opening one counts.
fn last_boxed(text: &str) -> Option<&str> {
    let start = text.rfind("\\boxed").or_else(|| text.rfind("\\fbox"))?;
    let mut open = 0;
    let mut first = None;
    for (byte, c) in text[start..].char_indices() {
        match c {
            '{' => {
                open += 1;
                first.get_or_insert(start + byte);
            }
            '}' => {
                open -= 1;
                if open == 0 {
                    return first.map(|first| strip(&text[first + 1..start + byte]));
                }
            }
            _ => {}
        }
    }
    None
}
