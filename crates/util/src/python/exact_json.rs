//! Reads JSON as Python does: integers keep all digits. `serde_json` rounds integers beyond 64 bits to floats.

use std::collections::HashMap;

use serde::de::IgnoredAny;

use super::value::{float_text, quoted};

/// Nesting limit, as in `serde_json`.
const DEEPEST: usize = 128;
/// Largest number of digits that Python converts to an integer.
const MAX_DIGITS: usize = 4300;
/// Largest number of digits with which every integer fits in 64 bits.
const SURE_DIGITS: usize = 18;

/// A JSON value. The fields of an object keep the order of their first occurrence.
#[derive(Clone, Debug, PartialEq)]
pub enum Exact {
    Null,
    Bool(bool),
    /// The digits of an integer, with a minus sign if it is negative.
    Integer(String),
    Float(f64),
    Text(String),
    List(Vec<Exact>),
    Object(Vec<(String, Exact)>),
}

impl Exact {
    /// Parses a text.
    ///
    /// # Errors
    /// If the text is not JSON or is nested too deeply; the message names the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        // The grammar is checked here, so the reader below does not check it again.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())?;
        Reader { text, at: 0, depth: 0 }.value()
    }

    /// Removes and returns a field; `None` if the value is not an object or lacks the field.
    pub fn take(&mut self, name: &str) -> Option<Self> {
        let Self::Object(fields) = self else { return None };
        let at = fields.iter().position(|(known, _)| known == name)?;
        Some(fields.remove(at).1)
    }

    /// Returns Python's `str(value)`.
    pub fn python_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            value => value.repr(),
        }
    }

    fn repr(&self) -> String {
        match self {
            Self::Null => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Integer(digits) => digits.clone(),
            Self::Float(value) => float_text(*value),
            Self::Text(text) => quoted(text),
            Self::List(values) => format!("[{}]", values.iter().map(Self::repr).collect::<Vec<_>>().join(", ")),
            Self::Object(fields) => {
                let field = |(name, value): &(String, Self)| format!("{}: {}", quoted(name), value.repr());
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Returns the first integer in the value that fits neither `i64` nor `u64`.
    pub fn beyond_64_bits(&self) -> Option<&str> {
        match self {
            Self::Integer(digits) => (digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err()).then_some(digits),
            Self::List(values) => values.iter().find_map(Self::beyond_64_bits),
            Self::Object(fields) => fields.iter().find_map(|(_, value)| value.beyond_64_bits()),
            _ => None,
        }
    }
}

/// Returns true if JSON text may have an integer beyond 64 bits: many digits outside of strings with no decimal point before
/// them. A quick check, since most files have none.
pub fn may_exceed_64_bits(json: &str) -> bool {
    let (mut in_text, mut escaped, mut digits, mut fraction) = (false, false, 0, false);
    json.bytes().any(|byte| {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            return false;
        }
        match byte {
            b'0'..=b'9' => digits += usize::from(!fraction),
            b'.' | b'e' | b'E' | b'+' | b'-' => (digits, fraction) = (0, fraction || byte != b'-'),
            _ => (in_text, digits, fraction) = (byte == b'"', 0, false),
        }
        digits > SURE_DIGITS
    })
}

/// A reader of valid JSON text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn value(&mut self) -> Result<Exact, String> {
        Ok(match self.peek() {
            b'[' => {
                let mut values = Vec::new();
                self.inside(b']', |reader| {
                    values.push(reader.value()?);
                    Ok(())
                })?;
                Exact::List(values)
            }
            b'{' => {
                let (mut fields, mut places) = (Vec::new(), HashMap::new());
                self.inside(b'}', |reader| {
                    let name = reader.string()?;
                    reader.peek();
                    reader.at += 1;
                    let value = reader.value()?;
                    // As in a dict, a repeated name keeps its first position and gets the last value.
                    let place = *places.entry(name.clone()).or_insert(fields.len());
                    if place == fields.len() {
                        fields.push((name, value))
                    } else {
                        fields[place].1 = value
                    }
                    Ok(())
                })?;
                Exact::Object(fields)
            }
            b'"' => Exact::Text(self.string()?),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
                self.at += end;
                scalar(&rest[..end])?
            }
        })
    }

    /// Reads the items between brackets, starting at the opening one.
    fn inside(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        if self.depth == DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        self.depth += 1;
        self.at += 1;
        while self.peek() != close {
            item(self)?;
            self.at += usize::from(self.peek() == b',');
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, String> {
        self.peek();
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let ends = |byte: u8| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        };
        let end = 2 + rest.bytes().skip(1).position(ends).unwrap_or_default();
        self.at += end;
        serde_json::from_str(&rest[..end]).map_err(|error| error.to_string())
    }
}

fn scalar(token: &str) -> Result<Exact, String> {
    Ok(match token {
        "null" => Exact::Null,
        "true" => Exact::Bool(true),
        "false" => Exact::Bool(false),
        "-0" => Exact::Integer("0".to_owned()),
        number if number.contains(['.', 'e', 'E']) => {
            Exact::Float(number.parse().map_err(|_| format!("{number} is not a number"))?)
        }
        integer if integer.len() > MAX_DIGITS => return Err(format!("an integer has more than {MAX_DIGITS} digits")),
        integer => Exact::Integer(integer.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `str(json.loads(text))` of Python 3.11.
    #[test]
    fn values_are_pythons() {
        for (json, python) in [
            ("354224848179261915075", "354224848179261915075"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1E400", "inf"),
            ("1e3", "1000.0"),
            (" \"a\\\"\\u00e9]\" ", "a\"é]"),
            ("[ ]", "[]"),
            (
                r#"{"b" : [1, 2.50,null , true], "a":{"x'":"y"}, "b":18446744073709551616}"#,
                r#"{'b': 18446744073709551616, 'a': {"x'": 'y'}}"#,
            ),
        ] {
            assert_eq!(Exact::parse(json).unwrap().python_text(), python, "{json}");
        }
        for (wrong, expected) in [("[1,]", "line 1 column 4"), ("", "EOF"), ("1 2", "trailing"), ("[\"\\ud800\"]", "hex escape")]
        {
            assert!(Exact::parse(wrong).unwrap_err().contains(expected), "{wrong}: {:?}", Exact::parse(wrong));
        }
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert!(Exact::parse(&deep(DEEPEST)).is_ok() && Exact::parse(&deep(100_000)).unwrap_err().contains("128"));
        assert!(Exact::parse(&"9".repeat(MAX_DIGITS + 1)).is_err());
    }

    #[test]
    fn integers_beyond_64_bits_are_found() {
        for (json, beyond) in [
            ("[1, 18446744073709551616]", Some("18446744073709551616")),
            ("{\"a\": {\"b\": -9223372036854775809}}", Some("-9223372036854775809")),
            ("[18446744073709551615, -9223372036854775808]", None),
            ("[\"18446744073709551616\", 0.18446744073709551616, 1.8e-19]", None),
            ("[\"\\\\\", 18446744073709551616, \"\\\"\"]", Some("18446744073709551616")),
        ] {
            let found = Exact::parse(json).unwrap();
            assert_eq!(found.beyond_64_bits(), beyond, "{json}");
            assert!(may_exceed_64_bits(json) || beyond.is_none(), "{json}");
        }
        assert!(!may_exceed_64_bits("[\"18446744073709551616\", 0.18446744073709551616, 1e-18446744073709551616]"));
    }
}
