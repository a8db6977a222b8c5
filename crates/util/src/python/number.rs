//! Python's `int(text)` and `float(text)`, which allow surrounding space, underscores between digits, and digits of all scripts.

use std::sync::LazyLock;

use regex::Regex;

use super::object::MAX_DIGITS;
use super::text::strip;

/// Returns `str(int(text))`; `None` where Python raises an error.
pub fn int_of(text: &str) -> Option<String> {
    let text = ascii(strip(text))?;
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (if text.starts_with('-') { "-" } else { "" }, rest),
        None => ("", text.as_str()),
    };
    let digits = without_underscores(digits)?;
    if digits.len() > MAX_DIGITS {
        return None;
    }
    Some(match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => format!("{sign}{digits}"),
    })
}

/// Returns `float(text)`; `None` where Python raises an error.
pub fn float_of(text: &str) -> Option<f64> {
    static FINITE: LazyLock<Regex> = LazyLock::new(|| {
        let digits = "[0-9](?:_?[0-9])*";
        Regex::new(&format!(r"^[+-]?(?:{digits}(?:\.(?:{digits})?)?|\.{digits})(?:[eE][+-]?{digits})?$"))
            .expect("a constant pattern")
    });
    let text = ascii(strip(text))?;
    let word = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if FINITE.is_match(&text) || (matches!(word.as_str(), "inf" | "infinity" | "nan") && text.len() <= word.len() + 1) {
        return text.replace('_', "").parse().ok();
    }
    None
}

/// Returns an integral float as digits; `None` if the float is not integral.
pub fn integral_digits(value: f64) -> Option<String> {
    (value.is_finite() && value.fract() == 0.0).then(|| format!("{:.0}", value + 0.0))
}

/// Returns digits without the underscores between them; `None` if the text is empty or has other characters.
pub(crate) fn without_underscores(digits: &str) -> Option<String> {
    let well = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    well.then(|| digits.replace('_', ""))
}

/// Converts digits of other scripts to ASCII; `None` if other characters remain.
fn ascii(text: &str) -> Option<String> {
    text.chars().map(|c| if c.is_ascii() { Some(c) } else { digit(c) }).collect()
}

/// Returns a digit as ASCII. The digits 0 to 9 of every script are consecutive, so the length of a run is a multiple of ten.
fn digit(c: char) -> Option<char> {
    static DIGIT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\p{Nd}$").expect("a constant pattern"));
    let is = |code: u32| char::from_u32(code).is_some_and(|c| DIGIT.is_match(c.encode_utf8(&mut [0; 4])));
    if !is(u32::from(c)) {
        return None;
    }
    let before = (1..=100).take_while(|back| is(u32::from(c).wrapping_sub(*back))).count() as u32;
    char::from_digit(before % 10, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pythons() {
        for (text, python) in [
            (" +1_000 ", Some("1000")),
            ("-0", Some("0")),
            ("007", Some("7")),
            ("٣٤", Some("34")),
            ("𝟗𝟎", Some("90")),
            ("1__0", None),
            ("_1", None),
            ("3.0", None),
            ("+-3", None),
            ("²", None),
            ("", None),
        ] {
            assert_eq!(int_of(text).as_deref(), python, "{text}");
        }
        for (text, python) in
            [("1_0.5e1_0", Some(10.5e10)), (".5", Some(0.5)), ("5.", Some(5.0)), ("-INF", Some(f64::NEG_INFINITY)), ("1e", None)]
        {
            assert_eq!(float_of(text), python, "{text}");
        }
        assert!(float_of(" nan").unwrap().is_nan() && float_of("--1").is_none() && float_of("0x1").is_none());
        assert_eq!(integral_digits(1e23).as_deref(), Some("99999999999999991611392"));
        assert_eq!(integral_digits(-0.0).as_deref(), Some("0"));
    }
}
