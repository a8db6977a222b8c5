//! The first of verl's two normal forms, by which answers are equal if they are equal as text.

use std::sync::LazyLock;

use super::python::{Pattern, pattern, strip};

/// The normal form of `answer`. Text that the rules cannot handle, such as `\sqrt` at its end, stays as it is.
pub fn normal(answer: &str) -> String {
    let answer = strip(answer);
    let answer = unwrap_text(answer).map_or(answer, strip);
    rewrite(answer).unwrap_or_else(|| answer.to_owned())
}

/// What the `\text{…}` holds that `answer` consists of.
pub fn unwrap_text(answer: &str) -> Option<&str> {
    static TEXT: Pattern = LazyLock::new(|| pattern(r"^\\text\{(.+?)\}\n?$"));
    TEXT.captures(answer).and_then(|found| found.get(1)).map(|inner| inner.as_str())
}

/// In this order.
const REPLACED: [(&str, &str); 9] = [
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
];

fn rewrite(answer: &str) -> Option<String> {
    let text = REPLACED.iter().fold(answer.to_owned(), |text, (from, to)| text.replace(from, to));
    let text = text.replace("\\$", "");
    let text = without_unit(&text)?.replace("\\\\%", "").replace("\\%", "");
    let text = text.replace(" .", " 0.").replace("{.", "{0.");
    let text = if text.starts_with('.') { format!("0{text}") } else { text };
    let text = braced_roots(without_name(&text))?.replace(' ', "");
    let text = braced_fractions(&text)?;
    let text = if text == "0.5" { "\\frac{1}{2}".to_owned() } else { text };
    Some(slash_to_fraction(&text).unwrap_or(text))
}

/// `\text{ ` begins a unit; two of them are more than the rule handles.
fn without_unit(text: &str) -> Option<&str> {
    match text.split_once("\\text{ ") {
        None => Some(text),
        Some((number, rest)) => (!rest.contains("\\text{ ")).then_some(number),
    }
}

/// `k = 3` is 3.
fn without_name(text: &str) -> &str {
    match text.split_once('=') {
        Some((name, value)) if name.chars().count() <= 2 && !value.contains('=') => value,
        _ => text,
    }
}

/// `\sqrt3` is `\sqrt{3}`.
fn braced_roots(text: &str) -> Option<String> {
    let mut parts = text.split("\\sqrt");
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let first = part.chars().next()?;
        out.push_str("\\sqrt");
        match first {
            '{' => out.push_str(part),
            _ => out.push_str(&format!("{{{first}}}{}", &part[first.len_utf8()..])),
        }
    }
    Some(out)
}

/// `\frac12` is `\frac{1}{2}`, and `\frac1{72}` is `\frac{1}{72}`.
fn braced_fractions(text: &str) -> Option<String> {
    let mut parts = text.split("\\frac");
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let mut chars = part.chars();
        let above = chars.next()?;
        out.push_str("\\frac");
        if above == '{' {
            out.push_str(part);
            continue;
        }
        let Some(below) = chars.next() else { return Some(text.to_owned()) };
        let rest = chars.as_str();
        match below {
            '{' => out.push_str(&format!("{{{above}}}{{{rest}")),
            _ => out.push_str(&format!("{{{above}}}{{{below}}}{rest}")),
        }
    }
    Some(out)
}

/// `3/4` is `\frac{3}{4}`, if both are integers written without anything superfluous.
fn slash_to_fraction(text: &str) -> Option<String> {
    static FRACTION: Pattern = LazyLock::new(|| pattern("^(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)$"));
    let found = FRACTION.captures(text)?;
    Some(format!("\\frac{{{}}}{{{}}}", &found[1], &found[2]))
}
