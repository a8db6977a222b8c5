//! Python's `ast.literal_eval`, and function calls written as Python code with literal arguments.
//!
//! Named characters (`\N{BULLET}`) are refused, because the table of names is missing here.

use std::sync::LazyLock;

use regex::Regex;

use super::number::without_underscores;
use super::object::{Fields, MAX_DIGITS, Object, may_be_set};

/// Nesting limit of brackets, as in Python.
const DEEPEST: usize = 200;

/// A call of a function with keyword arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonCall {
    /// The name, including dots.
    pub name: String,
    /// The arguments as a dict.
    pub arguments: Object,
}

/// Returns `ast.literal_eval(text)`; `None` where Python raises an error.
pub fn literal_eval(text: &str) -> Option<Object> {
    let text = normalized(text)?;
    let mut reader = Reader { text: text.trim_start_matches([' ', '\t']), at: 0, depth: 0, lines: false, json_names: false };
    reader.blank_lines();
    // After a blank line, leading space is an indentation.
    let indented = reader.at > 0 && reader.rest().starts_with([' ', '\t']);
    let value = if indented { return None } else { reader.tuple()? };
    reader.end()?;
    Some(value)
}

/// Reads calls: a list of them, or one per line, each alone or inside `print(…)`. Values are Python literals, `true`, `false` or
/// `null`. Returns `None` for other text, or if there is no call.
pub fn calls(text: &str) -> Option<Vec<PythonCall>> {
    let text = normalized(text)?;
    let mut reader = Reader { text: text.trim(), at: 0, depth: 0, lines: true, json_names: true };
    let mut calls = Vec::new();
    let listed = reader.takes('[');
    while reader.peek().is_some() {
        calls.push(reader.call()?);
        reader.space();
        if listed {
            let more = reader.takes(',');
            if reader.takes(']') {
                break;
            }
            more.then_some(())?;
        }
    }
    reader.end()?;
    (!calls.is_empty()).then_some(calls)
}

/// Returns the text with line ends normalized as Python does; `None` if Python refuses the text.
fn normalized(text: &str) -> Option<String> {
    (!text.contains('\0')).then(|| text.replace("\r\n", "\n").replace('\r', "\n"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// True where a line end counts as space.
    lines: bool,
    json_names: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let lines = self.lines || self.depth > 0;
            self.at += match rest.as_bytes() {
                [b' ' | b'\t' | b'\x0c', ..] => 1,
                [b'\n', ..] if lines => 1,
                [b'\\', b'\n', _, ..] => 2,
                [b'#', ..] if lines => rest.find('\n').unwrap_or(rest.len()),
                _ => return,
            };
        }
    }

    /// Skips empty lines, so that the next byte is at the start of a line.
    fn blank_lines(&mut self) {
        loop {
            let rest = self.rest();
            let content = rest.trim_start_matches([' ', '\t', '\x0c']);
            let spaces = rest.len() - content.len();
            self.at += match content.as_bytes().first() {
                Some(b'\n') => spaces + 1,
                Some(b'#') => spaces + content.find('\n').unwrap_or(content.len()),
                _ => return,
            };
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    fn takes(&mut self, c: char) -> bool {
        let takes = self.peek() == Some(c);
        self.at += if takes { c.len_utf8() } else { 0 };
        takes
    }

    fn end(&mut self) -> Option<()> {
        self.lines = true;
        self.peek().is_none().then_some(())
    }

    /// Reads a value, or a tuple of values separated by commas.
    fn tuple(&mut self) -> Option<Object> {
        let first = self.value()?;
        if self.peek() != Some(',') {
            return Some(first);
        }
        let mut values = vec![first];
        while self.takes(',') {
            if matches!(self.peek(), None | Some(')' | '\n' | '#')) {
                break;
            }
            values.push(self.value()?);
        }
        Some(Object::Tuple(values))
    }

    fn value(&mut self) -> Option<Object> {
        let c = self.peek()?;
        match c {
            '[' | '(' | '{' => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return None;
                }
                self.at += 1;
                let value = match c {
                    '[' => Object::List(self.values(']')?),
                    '(' if self.takes(')') => Object::Tuple(Vec::new()),
                    '(' => {
                        let value = self.tuple()?;
                        self.takes(')').then_some(value)?
                    }
                    _ => self.braces()?,
                };
                self.depth -= 1;
                // A parenthesis around a number may be followed by an imaginary part.
                match value {
                    Object::Int(_) | Object::Float(_) => self.sum(value),
                    value => Some(value),
                }
            }
            '+' | '-' => {
                self.at += 1;
                // A number has one sign; parentheses around it have no meaning.
                let value = if self.peek()? == '(' { self.value()? } else { self.number()? };
                let value = match value {
                    Object::Int(digits) if digits.starts_with('-') => return None,
                    Object::Float(value) if value.is_sign_negative() => return None,
                    Object::Int(digits) if c == '-' && digits != "0" => Object::Int(format!("-{digits}")),
                    Object::Float(value) if c == '-' => Object::Float(-value),
                    value @ (Object::Int(_) | Object::Float(_) | Object::Opaque { hashable: true }) => value,
                    _ => return None,
                };
                self.sum(value)
            }
            '0'..='9' => {
                let number = self.number()?;
                self.sum(number)
            }
            '.' if self.rest().starts_with("...") => {
                self.at += 3;
                Some(Object::Opaque { hashable: true })
            }
            '.' => {
                let number = self.number()?;
                self.sum(number)
            }
            _ => self.name_or_string(),
        }
    }

    /// Reads the imaginary part after a number, if any.
    fn sum(&mut self, number: Object) -> Option<Object> {
        if !matches!(self.peek(), Some('+' | '-')) {
            return Some(number);
        }
        self.at += 1;
        self.peek();
        // Only an imaginary number may follow, and only after a real one.
        let real = matches!(number, Object::Int(_) | Object::Float(_));
        let imaginary = number_pattern().find(self.rest()).is_some_and(|found| found.as_str().ends_with(['j', 'J']));
        (real && imaginary).then(|| self.number())?
    }

    /// Reads values up to and including the closing bracket.
    fn values(&mut self, close: char) -> Option<Vec<Object>> {
        let mut values = Vec::new();
        while !self.takes(close) {
            values.push(self.value()?);
            if !self.takes(',') {
                return self.takes(close).then_some(values);
            }
        }
        Some(values)
    }

    fn braces(&mut self) -> Option<Object> {
        if self.takes('}') {
            return Some(Object::Dict(Vec::new()));
        }
        let first = self.value()?;
        if !self.takes(':') {
            let mut values = vec![first];
            if self.takes(',') {
                values.extend(self.values('}')?);
            } else {
                self.takes('}').then_some(())?;
            }
            return may_be_set(&values).then_some(Object::Opaque { hashable: false });
        }
        let mut fields = Fields::default();
        let value = self.value()?;
        fields.set(first, value)?;
        loop {
            let more = self.takes(',');
            if self.takes('}') {
                return Some(fields.dict());
            }
            more.then_some(())?;
            let key = self.value()?;
            self.takes(':').then_some(())?;
            let value = self.value()?;
            fields.set(key, value)?;
        }
    }

    fn number(&mut self) -> Option<Object> {
        let text = number_pattern().find(self.rest())?.as_str();
        self.at += text.len();
        let base = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        if base != 10 {
            return Some(decimal(&text[2..].replace('_', ""), base).map_or(Object::Opaque { hashable: true }, Object::Int));
        }
        if text.ends_with(['j', 'J']) {
            return Some(Object::Opaque { hashable: true });
        }
        if text.contains(['.', 'e', 'E']) {
            return text.replace('_', "").parse().ok().map(Object::Float);
        }
        let digits = without_underscores(text)?;
        let zero = digits.bytes().all(|byte| byte == b'0');
        let fits = digits.len() <= MAX_DIGITS && (zero || !digits.starts_with('0'));
        fits.then(|| Object::Int(if zero { "0".to_owned() } else { digits }))
    }

    fn name(&mut self) -> Option<&'a str> {
        self.space();
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..length];
        self.at += length;
        (!name.is_empty() && !name.starts_with(|c: char| c.is_numeric())).then_some(name)
    }

    fn name_or_string(&mut self) -> Option<Object> {
        let rest = self.rest();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if letters <= 2 && rest[letters..].starts_with(['"', '\'']) {
            return self.strings();
        }
        Some(match self.name()? {
            "None" => Object::None,
            "True" => Object::Bool(true),
            "False" => Object::Bool(false),
            "null" if self.json_names => Object::None,
            "true" if self.json_names => Object::Bool(true),
            "false" if self.json_names => Object::Bool(false),
            "set" if self.takes('(') && self.takes(')') => Object::Opaque { hashable: false },
            _ => return None,
        })
    }

    /// Reads one string, or adjacent strings, which are joined.
    fn strings(&mut self) -> Option<Object> {
        let (mut text, mut whole, mut bytes) = (String::new(), true, None);
        loop {
            let is_bytes = self.string(&mut text, &mut whole)?;
            if *bytes.get_or_insert(is_bytes) != is_bytes {
                return None;
            }
            self.space();
            let rest = self.rest();
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            if letters > 2 || !rest[letters..].starts_with(['"', '\'']) {
                break;
            }
        }
        Some(if bytes == Some(false) && whole { Object::Text(text) } else { Object::Opaque { hashable: true } })
    }

    /// Reads a string into `out`. Returns true for a bytes literal. Sets `whole` to false if the string has a lone surrogate.
    fn string(&mut self, out: &mut String, whole: &mut bool) -> Option<bool> {
        let letters = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let prefix = self.rest()[..letters].to_ascii_lowercase();
        let (raw, bytes) = match prefix.as_str() {
            "" | "u" => (false, false),
            "r" => (true, false),
            "b" => (false, true),
            "br" | "rb" => (true, true),
            _ => return None,
        };
        self.at += letters;
        let quote = self.rest().get(..1)?;
        let triple = quote.repeat(3);
        let close = if self.rest().starts_with(&triple) { triple.as_str() } else { quote };
        self.at += close.len();
        let start = self.at;
        loop {
            let rest = self.rest();
            let plain = rest.find(['\\', '\n', quote.chars().next()?])?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            let rest = self.rest();
            if rest.starts_with(close) {
                break;
            }
            let c = rest.chars().next()?;
            if c == '\n' && close.len() == 1 {
                return None;
            }
            self.at += 1;
            match c {
                '\\' if raw => {
                    let next = self.rest().chars().next()?;
                    self.at += next.len_utf8();
                    out.extend(['\\', next]);
                }
                '\\' => self.escape(out, whole, bytes)?,
                c => out.push(c),
            }
        }
        let ascii = self.text[start..self.at].is_ascii();
        self.at += close.len();
        (ascii || !bytes).then_some(bytes)
    }

    /// Reads an escape, after its backslash.
    fn escape(&mut self, out: &mut String, whole: &mut bool, bytes: bool) -> Option<()> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        let digits = match c {
            'x' => 2,
            'u' if !bytes => 4,
            'U' if !bytes => 8,
            'N' if !bytes => return None,
            _ => 0,
        };
        if digits > 0 {
            let hex = self.rest().get(..digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            self.at += digits;
            let code = u32::from_str_radix(hex, 16).ok().filter(|code| *code <= 0x10ffff)?;
            match char::from_u32(code) {
                Some(c) => out.push(c),
                None => *whole = false,
            }
            return Some(());
        }
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(c),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            '0'..='7' => {
                let more = self.rest().bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                let octal = &self.text[self.at - 1..self.at + more];
                self.at += more;
                out.push(u32::from_str_radix(octal, 8).ok().and_then(char::from_u32)?);
            }
            c => out.extend(['\\', c]),
        }
        Some(())
    }

    fn call(&mut self) -> Option<PythonCall> {
        let mut name = self.name()?.to_owned();
        while self.takes('.') {
            name.push('.');
            name.push_str(self.name()?);
        }
        self.takes('(').then_some(())?;
        if name == "print" {
            // The call is inside: `print` itself is not a tool.
            self.depth += 1;
            (self.depth <= DEEPEST).then_some(())?;
            let call = self.call()?;
            self.depth -= 1;
            return self.takes(')').then_some(call);
        }
        let mut fields = Fields::default();
        while !self.takes(')') {
            let key = self.name()?;
            self.takes('=').then_some(())?;
            let value = self.value()?;
            fields.set_text(key, value);
            if !self.takes(',') {
                self.takes(')').then_some(())?;
                break;
            }
        }
        Some(PythonCall { name, arguments: fields.dict() })
    }
}

/// Returns the pattern of a number at the start of a text.
fn number_pattern() -> &'static Regex {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        let digits = "[0-9](?:_?[0-9])*";
        let float = format!(r"(?:{digits}(?:\.(?:{digits})?)?|\.{digits})(?:[eE][+-]?{digits})?[jJ]?");
        let whole = "0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+";
        Regex::new(&format!("^(?:{whole}|{float})")).expect("a constant pattern")
    });
    &NUMBER
}

/// Converts digits of a base up to 16 to decimal; `None` if Python refuses to print a number of that size.
fn decimal(digits: &str, base: u32) -> Option<String> {
    const LIMB: u64 = 1_000_000_000;
    let digits = digits.trim_start_matches('0');
    // log2(10) is less than 3.33.
    if digits.len() * base.ilog2() as usize > MAX_DIGITS * 333 / 100 {
        return None;
    }
    let mut limbs: Vec<u64> = vec![0];
    for piece in digits.as_bytes().chunks(6) {
        let mut carry = u64::from_str_radix(std::str::from_utf8(piece).ok()?, base).ok()?;
        for limb in &mut limbs {
            let value = *limb * u64::from(base).pow(piece.len() as u32) + carry;
            (*limb, carry) = (value % LIMB, value / LIMB);
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let text: String = limbs.iter().rev().map(|limb| format!("{limb:09}")).collect();
    let text = text.trim_start_matches('0');
    (text.len() <= MAX_DIGITS).then(|| if text.is_empty() { "0".to_owned() } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with `json.dumps(ast.literal_eval(text), ensure_ascii=False)` of Python 3.12; `None` stands for an error of
    /// `literal_eval`, and empty text for an error of `dumps`.
    #[test]
    fn literals_are_pythons() {
        for (text, python) in [
            (" [1, 2.50, 'a\\x41' \"b\", None, True]", Some(r#"[1, 2.5, "aAb", null, true]"#)),
            ("{'a': (1,), 1: {}, 1.0: [], None: 1e400}", Some(r#"{"a": [1], "1": [], "null": Infinity}"#)),
            ("1, 'x'  # why\n\n", Some(r#"[1, "x"]"#)),
            ("0x_ff", Some("255")),
            ("-0xFFFFFFFFFFFFFFFFFFFFFFFF", Some("-79228162514264337593543950335")),
            ("[-(1), +1_0, (2)]", Some("[-1, 10, 2]")),
            ("r'\\n' '''a\nb'''", Some(r#""\\na\nb""#)),
            ("'\\101\\q'", Some(r#""A\\q""#)),
            ("\n[\n1 # one\n,]", Some("[1]")),
            ("{1, 2}", Some("")),
            ("b'x'", Some("")),
            ("1+2j", Some("")),
            ("'\\ud83d\\ude42'", Some("")),
            ("{(1, 2): 3}", Some("")),
            ("[true, null]", None),
            ("{[1]: 2}", None),
            ("{[1]}", None),
            ("1 + 1", None),
            ("-True", None),
            ("--1", None),
            ("-(-1)", None),
            ("[1]\\\n", None),
            ("007", None),
            ("'a\nb'", None),
            ("\n 1", None),
            ("f'x'", None),
            ("", None),
            ("[1 2]", None),
            ("[,]", None),
        ] {
            assert_eq!(literal_eval(text).map(|value| value.to_json().unwrap_or_default()).as_deref(), python, "{text}");
        }
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert!(literal_eval(&deep(100)).is_some() && literal_eval(&deep(100_000)).is_none());
        assert!(literal_eval(&"{1:".repeat(100_000)).is_none() && literal_eval(&"-".repeat(100_000)).is_none());
    }

    #[test]
    fn calls_are_read() {
        let read = |text: &str| calls(text).map(|calls| calls.into_iter().map(|call| call.name).collect::<Vec<_>>().join(" "));
        assert_eq!(read("[f(x=1, y='a, b'), g.h()]").unwrap(), "f g.h");
        assert_eq!(read("print(api.f(x=true))\ng(y=[1,\n2])").unwrap(), "api.f g");
        for text in ["[]", "", "[f(1)]", "[f(x=y)]", "f(x=1) and", "[f(x=1) g()]", "f", "print(print("] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"print(".repeat(100_000)), None);
    }
}
