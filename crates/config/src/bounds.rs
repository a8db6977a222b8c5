//! Checks numbers against the allowed values in the comments of the built-in files, so that documented ranges are enforced.

use super::accepts::{Accepts, Range};
use super::comment::Comment;
use burnish_hydra::{Node, Problem, Value};

/// Returns the problems of settings whose value is not allowed by their comment. `written`: the built-in configuration,
/// unresolved. Only keys with numbers are checked; types and registries check words.
pub(crate) fn find(settings: &Node, written: &Node) -> Vec<Problem> {
    written.keys().iter().filter_map(|key| check(key, settings.get(key)?, written.get(key)?)).collect()
}

/// Returns the problem of a setting with this default; `None` without a problem.
fn check(key: &str, node: &Node, default: &Node) -> Option<Problem> {
    if matches!(default.value, Value::Map(_)) {
        return None;
    }
    let comment = Comment::for_node(default);
    let accepts = comment.accepts().filter(|accepts| accepts.iter().any(Accepts::is_numeric))?;
    let (node, expected) = misfit(node, &accepts)?;
    let is_infinite = matches!(node.value, Value::Float(value) if !value.is_finite());
    let message = format!("`{key}` must be {}, not {}", in_words(expected, is_infinite), shown(&node.value));
    let problem = Problem::new(key, message).with_value(node);
    let takes_more = comment.vocabulary.contains(" | ");
    Some(if takes_more { problem.help(format!("it takes {}", comment.vocabulary)) } else { problem })
}

/// Returns the node that is not allowed (which may be an item of a list), and the allowed values.
fn misfit<'a>(node: &'a Node, accepts: &'a [Accepts]) -> Option<(&'a Node, &'a [Accepts])> {
    if accepts.iter().any(|accepts| accepts.holds(&node.value)) {
        return None;
    }
    let items = accepts.iter().find_map(|accepts| if let Accepts::List(_, items) = accepts { Some(items) } else { None });
    let inside = match (&node.value, items) {
        (Value::List(list), Some(items)) => list.iter().find_map(|item| misfit(item, items)),
        _ => None,
    };
    Some(inside.unwrap_or((node, accepts)))
}

/// Describes a list of allowed values for a message. `finite`: the text says that numbers must be finite. `null` is left out,
/// because the user wrote a number.
fn in_words(accepts: &[Accepts], finite: bool) -> String {
    // `0 | number > 0` is one range.
    let bound = accepts.iter().find_map(|accepts| if let Accepts::Number(range) = accepts { range.above } else { None });
    let closes = |value: &Value| bound.is_some_and(|bound| *value == Value::Int(bound as i64));
    let closed = accepts.iter().any(|accepts| matches!(accepts, Accepts::One(value) if closes(value)));
    let words = accepts.iter().filter_map(|accepts| match accepts {
        Accepts::One(value) if *value == Value::Null || closes(value) => None,
        Accepts::One(value) => Some(shown(value)),
        Accepts::Prefix(start) => Some(format!("{start}N")),
        Accepts::Integer(range) if finite => Some(format!("an integer, {}", integers(range)).replace(", an integer", "")),
        Accepts::Integer(range) => Some(integers(range)),
        Accepts::Number(range) => {
            let range = if closed { Range { above: None, min: range.above, ..*range } } else { *range };
            Some(if finite { finite_numbers(&range) } else { numbers(&range) })
        }
        Accepts::Text => Some("text".to_owned()),
        Accepts::List(Some(length), items) => Some(format!("a list of {length}, each {}", in_words(items, finite))),
        Accepts::List(None, items) => Some(format!("a list, each {}", in_words(items, finite))),
        Accepts::Mapping => Some("a mapping".to_owned()),
    });
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

fn integers(range: &Range) -> String {
    match (range.above.map(|bound| bound + 1.0).or(range.min), range.max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "an integer".to_owned(),
    }
}

fn numbers(range: &Range) -> String {
    match *range {
        Range { above: Some(above), max: Some(max), .. } => format!("above {above} and at most {max}"),
        Range { above: Some(above), .. } => format!("above {above}"),
        Range { min: Some(min), below: Some(below), .. } => format!("from {min} to below {below}"),
        Range { min: Some(min), max: Some(max), .. } => format!("from {min} to {max}"),
        Range { min: Some(min), .. } => format!("{min} or above"),
        Range { max: Some(max), .. } => format!("at most {max}"),
        _ => "a finite number".to_owned(),
    }
}

/// Describes a range, including that its numbers are finite.
fn finite_numbers(range: &Range) -> String {
    match *range {
        Range { min: Some(min), below: None, max: None, .. } => format!("a finite number of {min} or above"),
        Range { above: None, min: None, below: None, max: None } => numbers(range),
        _ => format!("a finite number {}", numbers(range)),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Float(value) => value.to_string(),
        Value::Text(text) => format!("`{text}`"),
        value => value.plain_text().unwrap_or_else(|| format!("a {}", value.kind())),
    }
}
