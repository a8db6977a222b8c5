//! The first of verl's two normal forms. Two answers are equal if their normal forms are equal as text.

use std::sync::LazyLock;

use super::python::{Pattern, pattern, strip};
use crate::hendrycks::normal_form;

/// Returns the normal form of `answer`, without the given spellings of a percent sign. A text that the rules cannot handle, such
/// as one with `\sqrt` at its end, stays unchanged.
pub(super) fn normal(answer: &str, percent: &[&str]) -> String {
    let answer = strip(answer);
    let answer = unwrap_text(answer).map_or(answer, strip);
    normal_form(answer, percent).unwrap_or_else(|| answer.to_owned())
}

/// Returns the content of `\text{…}` if `answer` consists only of it.
pub(crate) fn unwrap_text(answer: &str) -> Option<&str> {
    static TEXT: Pattern = LazyLock::new(|| pattern(r"^\\text\{(.+?)\}\n?$"));
    TEXT.captures(answer).and_then(|found| found.get(1)).map(|inner| inner.as_str())
}
