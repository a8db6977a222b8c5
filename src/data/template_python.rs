//! Makes minijinja follow Python where it follows Rust: what counts as whitespace, where lines end, how numbers are printed, and
//! what can be iterated.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value, escape_formatter};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::util::python_value::float_text;

/// Replaces minijinja's rules by Python's. Remaining differences: methods of text that no known template uses (`"it's".title()`),
/// floats with an exponent inside a printed list, `{% for x in none %}`, which is empty here and an error there, and `|safe`,
/// which here never makes the text beside it escape.
pub fn follow_python(environment: &mut Environment) {
    environment.set_unknown_method_callback(method);
    environment.set_formatter(print);
    environment.add_filter("trim", |value: &Value, characters: Option<&str>| strip(&text(value), characters, true, true));
    environment.add_filter("string", text);
    // An undefined value has no items, rather than being an error.
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

/// The value as a float, if it is a finite one.
pub fn float(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    is_float.then(|| f64::try_from(value.clone()).ok()).flatten().filter(|x| x.is_finite())
}

/// Python's `str(value)`.
fn text(value: &Value) -> String {
    float(value).map_or_else(|| value.to_string(), float_text)
}

fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match float(value) {
        Some(x) => out.write_str(&float_text(x)).map_err(|_| Error::new(ErrorKind::WriteFailure, "cannot print a number")),
        None => escape_formatter(out, state, value),
    }
}

fn method(state: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (left, right) = match (value.as_str(), name) {
        (Some(_), "strip") => (true, true),
        (Some(_), "lstrip") => (true, false),
        (Some(_), "rstrip") => (false, true),
        (Some(text), "splitlines") if arguments.is_empty() => return Ok(lines(text).into_iter().collect()),
        _ => return unknown_method_callback(state, value, name, arguments),
    };
    let (characters,): (Option<&str>,) = minijinja::value::from_args(arguments)?;
    Ok(Value::from(strip(value.as_str().unwrap_or_default(), characters, left, right)))
}

/// Returns the text without the `characters`, or without whitespace if there are none given, at its ends.
fn strip(text: &str, characters: Option<&str>, left: bool, right: bool) -> String {
    let strips = |c: char| match characters {
        Some(characters) => characters.contains(c),
        // Python also counts the separators of files, groups, records and units as whitespace.
        None => c.is_whitespace() || ('\x1c'..='\x1f').contains(&c),
    };
    let text = if left { text.trim_start_matches(strips) } else { text };
    (if right { text.trim_end_matches(strips) } else { text }).to_owned()
}

/// Python's `str.splitlines()`.
fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends) {
        out.push(&rest[..at]);
        let after = &rest[at..];
        rest = after.strip_prefix("\r\n").or(after.strip_prefix(ends)).unwrap_or_default();
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::util::python_value::float_text;

    #[test]
    fn floats_print_as_in_python() {
        let expected = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5e-5, "-2.5e-05"),
            (1e-4, "0.0001"),
            (123456789.125, "123456789.125"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ];
        for (x, text) in expected {
            assert_eq!(float_text(x), text);
        }
    }
}
