//! Template values in Python's form: `str`, `repr`, and `splitlines`.

use minijinja::Value;
use minijinja::value::ValueKind;

use burnish_util::python_value::{float_text, quoted};

/// Returns the value as a float; `None` if it is not a finite float.
pub(crate) fn float(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    is_float.then(|| f64::try_from(value.clone()).ok()).flatten().filter(|x| x.is_finite())
}

/// Python's `str(value)`.
pub(crate) fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => repr(value, DEEPEST),
        _ => value.to_string(),
    }
}

/// Nesting limit of Python's rules for printing; deeper values are printed by minijinja.
const DEEPEST: usize = 100;

/// Python's `repr(value)`.
fn repr(value: &Value, depth: usize) -> String {
    let nested = |value: &Value| repr(value, depth - 1);
    let items =
        || -> Vec<String> { value.try_iter().map_or_else(|_| Vec::new(), |items| items.map(|item| nested(&item)).collect()) };
    match value.kind() {
        ValueKind::Number => float(value).map_or_else(|| value.to_string(), float_text),
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Undefined => "Undefined".to_owned(),
        ValueKind::Seq if depth > 0 => match (value.is_tuple(), items()) {
            (true, items) if items.len() == 1 => format!("({},)", items[0]),
            (true, items) => format!("({})", items.join(", ")),
            (false, items) => format!("[{}]", items.join(", ")),
        },
        ValueKind::Map if depth > 0 => {
            let pair = |key: Value| {
                format!("{}: {}", nested(&key), value.get_item(&key).map_or_else(|_| String::new(), |it| nested(&it)))
            };
            let pairs: Vec<String> = value.try_iter().map_or_else(|_| Vec::new(), |keys| keys.map(pair).collect());
            format!("{{{}}}", pairs.join(", "))
        }
        _ => value.to_string(),
    }
}

/// Python's `str.splitlines()`.
pub(crate) fn lines(text: &str) -> Vec<&str> {
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
    use burnish_util::python_value::float_text;

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
