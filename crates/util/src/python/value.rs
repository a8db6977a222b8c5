//! Formats JSON values like Python's `str`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Returns `str(value)`.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => repr(value),
    }
}

/// Returns `repr` of a float: the fewest digits that read back the same, with an exponent below 1e-4 and from 1e16.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let behind_dot = digits.split_once('.').map_or(0, |(_, digits)| digits.len());
    // Of two equally near decimals, Python takes the one that ends in an even digit, and Rust the larger one.
    let even = |text: String, otherwise: String| if text.parse() == Ok(value) { text } else { otherwise };
    if (-4..16).contains(&exponent) {
        let decimals = usize::try_from(behind_dot as i32 - exponent).unwrap_or(0).max(1);
        return even(format!("{value:.decimals$}"), format!("{value:?}"));
    }
    let scientific = even(format!("{value:.behind_dot$e}"), scientific);
    let digits = scientific.split_once('e').map_or(scientific.as_str(), |(digits, _)| digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn repr(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) if number.is_f64() => float_text(number.as_f64().unwrap_or(f64::NAN)),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("[{}]", joined(values.iter().map(repr).collect())),
        Value::Object(fields) => {
            format!("{{{}}}", joined(fields.iter().map(|(name, value)| format!("{}: {}", quoted(name), repr(value))).collect()))
        }
    }
}

/// Returns `repr` of text: in single quotes, or in double quotes if the text has only single ones.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote || c == '\\' => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => match u32::from(c) {
                code @ ..0x100 => out.push_str(&format!("\\x{code:02x}")),
                code @ ..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    out.push(quote);
    out
}

/// Python's `str.isprintable` for one character: false for control, format and unassigned characters and for all spaces except
/// U+0020.
fn is_printable(c: char) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}]$").expect("a constant pattern"));
    if c.is_ascii() { !c.is_ascii_control() } else { !OTHER.is_match(c.encode_utf8(&mut [0; 4])) }
}

/// Returns `text.strip().isalpha()`.
pub fn is_alpha(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::float_text;

    /// The right column was printed by Python 3.11. In the first rows two decimals of equal length are equally near.
    #[test]
    #[expect(clippy::excessive_precision, reason = "the digits between which a float is chosen")]
    fn floats_are_pythons() {
        for (value, expected) in [
            (145220.537353515625, "145220.53735351562"),
            (887152974717177.25, "887152974717177.2"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100.0, "100.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (9007199254740994.0, "9007199254740994.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (1e-4, "0.0001"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(float_text(value), expected);
        }
    }
}
