//! Python's `json.loads`: accepts `NaN` and infinities, keeps all digits of integers, takes the last value of a repeated key, and
//! raises Python's (3.12) error messages.

use super::object::{Fields, MAX_DIGITS, Object};

/// Nesting limit. Python stops at about a thousand.
pub const DEEPEST: usize = 500;

/// Returns `json.loads(text)`. A string with a lone surrogate becomes [`Object::Opaque`], since a Rust string cannot hold it.
///
/// # Errors
/// Python's message for text that is not JSON, with line, column and position in characters; or that the text is nested too
/// deeply.
pub fn loads(text: &str) -> Result<Object, String> {
    if text.starts_with('\u{feff}') {
        return Err(failure(text, "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.space();
    let value = reader.value().map_err(|(what, at)| failure(text, &what, at))?;
    reader.space();
    if reader.at == text.len() { Ok(value) } else { Err(failure(text, "Extra data", reader.at)) }
}

/// Formats an error like Python; `at` is in bytes.
fn failure(text: &str, what: &str, at: usize) -> String {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before[before.rfind('\n').map_or(0, |newline| newline + 1)..].chars().count() + 1;
    format!("{what}: line {line} column {column} (char {})", before.chars().count())
}

/// An error message, and the byte offset of the error.
type ReadError = (String, usize);

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Object, ReadError> {
        match self.peek() {
            Some(b'"') => Ok(self.string()?.map_or(Object::Opaque { hashable: true }, Object::Text)),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            _ => self.scalar(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Object, ReadError>) -> Result<Object, ReadError> {
        if self.depth == DEEPEST {
            return Err((format!("nested more than {DEEPEST} levels deep"), self.at));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Object, ReadError> {
        let mut fields = Fields::default();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(fields.dict());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(("Expecting property name enclosed in double quotes".to_owned(), self.at));
            }
            let start = self.at;
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(("Expecting ':' delimiter".to_owned(), self.at));
            }
            self.at += 1;
            self.space();
            let value = self.value()?;
            match key {
                Some(key) => fields.set_text(key, value),
                // Such a key makes the object unprintable, so equality with another key does not matter.
                None => fields.set_text(&self.text[start..self.at], Object::Opaque { hashable: true }),
            }
            self.space();
            match self.peek() {
                Some(b'}') => break,
                Some(b',') => self.at += 1,
                _ => return Err(("Expecting ',' delimiter".to_owned(), self.at)),
            }
            self.space();
        }
        self.at += 1;
        Ok(fields.dict())
    }

    fn array(&mut self) -> Result<Object, ReadError> {
        let mut values = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Object::List(values));
        }
        loop {
            values.push(self.value()?);
            self.space();
            match self.peek() {
                Some(b']') => break,
                Some(b',') => self.at += 1,
                _ => return Err(("Expecting ',' delimiter".to_owned(), self.at)),
            }
            self.space();
        }
        self.at += 1;
        Ok(Object::List(values))
    }

    fn scalar(&mut self) -> Result<Object, ReadError> {
        let words = [
            ("null", Object::None),
            ("true", Object::Bool(true)),
            ("false", Object::Bool(false)),
            ("NaN", Object::Float(f64::NAN)),
            ("Infinity", Object::Float(f64::INFINITY)),
            ("-Infinity", Object::Float(f64::NEG_INFINITY)),
        ];
        let rest = &self.text[self.at..];
        if let Some((word, value)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(value);
        }
        let nothing = || ("Expecting value".to_owned(), self.at);
        let digits = |from: usize| rest.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let sign = usize::from(rest.starts_with('-'));
        let integer_digits = match rest.as_bytes().get(sign) {
            Some(b'0') => 1,
            _ => digits(sign),
        };
        if integer_digits == 0 {
            return Err(nothing());
        }
        let integer = sign + integer_digits;
        let mut end = integer;
        if rest[end..].starts_with('.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let signed = end + 1 + usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(signed);
            end = if exponent > 0 { signed + exponent } else { end };
        }
        let value = match &rest[..end] {
            "-0" => Object::Int("0".to_owned()),
            // Python's message has no position here.
            _ if end == integer && integer_digits > MAX_DIGITS => {
                return Err(("Exceeds the limit of digits of an integer".to_owned(), self.at));
            }
            number if end == integer => Object::Int(number.to_owned()),
            number => Object::Float(number.parse().map_err(|_| nothing())?),
        };
        self.at += end;
        Ok(value)
    }

    /// Reads a string, starting at its opening quote. `None` if it has a lone surrogate.
    fn string(&mut self) -> Result<Option<String>, ReadError> {
        let start = self.at;
        self.at += 1;
        let (mut out, mut is_complete) = (String::new(), true);
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let unterminated = || ("Unterminated string starting at".to_owned(), start);
            let length = plain.ok_or_else(unterminated)?;
            out.push_str(&rest[..length]);
            self.at += length;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {}
                _ => return Err(("Invalid control character at".to_owned(), self.at)),
            }
            let escape = self.text.as_bytes().get(self.at + 1).ok_or_else(unterminated)?;
            self.at += 2;
            out.push(match escape {
                b'"' | b'\\' | b'/' => char::from(*escape),
                b'b' => '\x08',
                b'f' => '\x0c',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => match self.unicode()? {
                    Some(c) => c,
                    None => {
                        is_complete = false;
                        continue;
                    }
                },
                _ => return Err(("Invalid \\escape".to_owned(), self.at - 2)),
            });
        }
        self.at += 1;
        Ok(is_complete.then_some(out))
    }

    /// Reads the digits after `\u`, and the second half of a surrogate pair. `None` for a lone surrogate.
    fn unicode(&mut self) -> Result<Option<char>, ReadError> {
        let four = |at: usize| {
            let digits = self.text.as_bytes().get(at..at + 4)?;
            let hex = digits.iter().all(u8::is_ascii_hexdigit).then(|| self.text.get(at..at + 4))??;
            u32::from_str_radix(hex, 16).ok()
        };
        let first = four(self.at).ok_or_else(|| ("Invalid \\uXXXX escape".to_owned(), self.at - 1))?;
        let second = self.text.as_bytes()[self.at + 4..].starts_with(b"\\u").then(|| four(self.at + 6)).flatten();
        self.at += 4;
        if let (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) = (first, second) {
            self.at += 6;
            return Ok(char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
        }
        Ok(char::from_u32(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `json.dumps(json.loads(text), ensure_ascii=False)` of Python 3.12.
    #[test]
    fn values_are_pythons() {
        for (json, python) in [
            ("[1.0, 1E400, -0, -0.0, NaN, -Infinity, 1e-7]", "[1.0, Infinity, 0, -0.0, NaN, -Infinity, 1e-07]"),
            ("{\"a\": 1, \"b\":2 , \"a\": [ ]}", "{\"a\": [], \"b\": 2}"),
            ("\"\\ud83d\\ude42\\u0041\\/\\u007f\\u0001\"", "\"🙂A/\x7f\\u0001\""),
            (" 123456789012345678901234567890\n", "123456789012345678901234567890"),
        ] {
            assert_eq!(loads(json).unwrap().to_json().unwrap(), python, "{json}");
        }
        assert_eq!(loads("[\"\\ud83d\"]").unwrap().to_json(), None);
        assert_eq!(loads("{\"\\ud83d\\ud83d\": 1}").unwrap().to_json(), None);
    }

    #[test]
    fn errors_are_pythons() {
        for (json, python) in [
            ("", "Expecting value: line 1 column 1 (char 0)"),
            ("{a", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
            ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
            ("[1\n é]", "Expecting ',' delimiter: line 2 column 2 (char 4)"),
            ("1 2", "Extra data: line 1 column 3 (char 2)"),
            ("01", "Extra data: line 1 column 2 (char 1)"),
            ("\"é\n\"", "Invalid control character at: line 1 column 3 (char 2)"),
            ("\"é\\x\"", "Invalid \\escape: line 1 column 3 (char 2)"),
            ("[\"a", "Unterminated string starting at: line 1 column 2 (char 1)"),
            ("\"\\u00é0\"", "Invalid \\uXXXX escape: line 1 column 3 (char 2)"),
            ("-", "Expecting value: line 1 column 1 (char 0)"),
        ] {
            assert_eq!(loads(json).unwrap_err(), python, "{json}");
        }
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert!(loads(&deep(DEEPEST)).unwrap().to_json().is_some() && loads(&deep(100_000)).is_err());
        assert!(loads(&"{\"a\":".repeat(100_000)).is_err());
    }
}
