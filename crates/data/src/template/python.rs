//! Makes minijinja follow Python instead of Rust: whitespace, line ends, printed numbers, and iteration.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::values::{lines, text};
use super::{filters, methods, namespaces};

/// Replaces minijinja's rules by Python's. Remaining differences: a printed range; `[1e-7] ~ ''`; `{% for x in none %}` (empty
/// here, an error in Jinja); `|safe` (never escapes the text next to it here).
pub(crate) fn follow_python(environment: &mut Environment) {
    environment.set_unknown_method_callback(method);
    environment.set_formatter(print);
    environment.add_filter("trim", |value: &Value, characters: Option<&str>| strip(&text(value), characters, true, true));
    environment.add_filter("string", text);
    filters::add(environment);
    namespaces::add(environment);
    // An undefined value has no items and is not an error.
    environment.add_filter("items", |value: &Value| match value.is_undefined() {
        true => Ok(Value::from(Vec::<Value>::new())),
        false => minijinja::filters::items(value),
    });
    for name in ["length", "count"] {
        environment.add_filter(name, |value: &Value| match value.is_undefined() {
            true => Ok(0),
            false => minijinja::filters::length(value),
        });
    }
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Undefined | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::String)
    });
}

fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            out.write_str(&text(value)).map_err(|_| Error::new(ErrorKind::WriteFailure, "cannot print a value"))
        }
        _ => escape_formatter(out, state, value),
    }
}

fn method(state: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (left, right) = match (value.as_str(), name) {
        (Some(_), "strip") => (true, true),
        (Some(_), "lstrip") => (true, false),
        (Some(_), "rstrip") => (false, true),
        (Some(text), "splitlines") if arguments.is_empty() => return Ok(lines(text).into_iter().collect()),
        (Some(text), _) => match methods::call_str_method(text, name, arguments) {
            Some(result) => return result,
            None => return unknown_method_callback(state, value, name, arguments),
        },
        (None, _) if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) => {
            match methods::call_list_method(value, name, arguments) {
                Some(result) => return result,
                None => return unknown_method_callback(state, value, name, arguments),
            }
        }
        _ => return unknown_method_callback(state, value, name, arguments),
    };
    let (characters,): (Option<&str>,) = minijinja::value::from_args(arguments)?;
    Ok(Value::from(strip(value.as_str().unwrap_or_default(), characters, left, right)))
}

/// Strips `characters` from the ends of a text, or whitespace if not given.
fn strip(text: &str, characters: Option<&str>, left: bool, right: bool) -> String {
    let strips = |c: char| match characters {
        Some(characters) => characters.contains(c),
        // Python also treats the separators U+001C to U+001F as whitespace.
        None => c.is_whitespace() || ('\x1c'..='\x1f').contains(&c),
    };
    let text = if left { text.trim_start_matches(strips) } else { text };
    (if right { text.trim_end_matches(strips) } else { text }).to_owned()
}
