//! The value grammar of Hydra's command line: scalars, quoted strings, lists, dicts, casts.

use super::provenance::Origin;
use super::scalar;
use super::tree::{Map, Node, Value};
use std::iter::Peekable;
use std::str::Chars;

/// Parses what stands behind the `=` of an override.
///
/// # Errors
/// What is wrong with the text and how to write it instead.
pub fn parse_value(text: &str, origin: &Origin) -> Result<Node, String> {
    let mut parser = ValueParser { chars: text.chars().peekable(), origin };
    let value = parser.element("")?;
    match parser.chars.peek() {
        None => Ok(value),
        Some(',') => Err("a bare `,` would mean several runs: write a list as [a,b], or put a text with commas in quotes".into()),
        Some(other) => Err(unexpected(*other)),
    }
}

struct ValueParser<'a> {
    chars: Peekable<Chars<'a>>,
    origin: &'a Origin,
}

/// Casts that may be written around a value.
const CASTS: &[&str] = &["int", "float", "str", "bool"];

impl ValueParser<'_> {
    /// One value; it ends before a `,` or one of `closers`.
    fn element(&mut self, closers: &str) -> Result<Node, String> {
        self.skip_spaces();
        let value = match self.chars.peek() {
            Some('[') => self.list()?,
            Some('{') => self.dict()?,
            Some('\'' | '"') => Value::Text(self.quoted()?),
            _ => self.primitive(closers)?,
        };
        self.skip_spaces();
        Ok(Node::new(value, self.origin.clone()))
    }

    fn list(&mut self) -> Result<Value, String> {
        self.chars.next();
        let mut items = vec![];
        self.skip_spaces();
        if self.chars.next_if_eq(&']').is_some() {
            return Ok(Value::List(items));
        }
        loop {
            self.not_empty("]")?;
            items.push(self.element("]")?);
            match self.chars.next() {
                Some(',') => {}
                Some(']') => return Ok(Value::List(items)),
                Some(other) => return Err(unexpected(other)),
                None => return Err("this list has no closing `]`".into()),
            }
        }
    }

    fn dict(&mut self) -> Result<Value, String> {
        self.chars.next();
        let mut map: Map = vec![];
        self.skip_spaces();
        if self.chars.next_if_eq(&'}').is_some() {
            return Ok(Value::Map(map));
        }
        loop {
            let key = self.key()?;
            self.not_empty("}")?;
            let value = self.element("}")?;
            map.retain(|(known, _)| *known != key);
            map.push((key, value));
            match self.chars.next() {
                Some(',') => self.skip_spaces(),
                Some('}') => return Ok(Value::Map(map)),
                Some(other) => return Err(unexpected(other)),
                None => return Err("this mapping has no closing `}`".into()),
            }
        }
    }

    /// The key of a dict entry, and its `:`.
    fn key(&mut self) -> Result<String, String> {
        let mut key = String::new();
        loop {
            match self.chars.next() {
                Some(':') if !key.trim().is_empty() => return Ok(key.trim().to_string()),
                Some('\'' | '"') => return Err("keys are written without quotes: {key: value}".into()),
                Some('=') => return Err("a mapping is written with `:`, as in {key: value}".into()),
                Some(c) if c.is_ascii_alphanumeric() || "_-./$%*@?| ".contains(c) => key.push(c),
                _ => return Err("a mapping is written as {key: value, key: value}".into()),
            }
        }
    }

    /// A quoted string. A backslash escapes the quote; before anything else it is itself.
    fn quoted(&mut self) -> Result<String, String> {
        let Some(quote) = self.chars.next() else { return Err("expected a quote".into()) };
        let mut text = String::new();
        let mut backslashes = 0;
        for c in self.chars.by_ref() {
            if c == quote {
                text.truncate(text.len() - backslashes);
                text.push_str(&"\\".repeat(backslashes / 2));
                if backslashes % 2 == 0 {
                    return Ok(text);
                }
            }
            backslashes = if c == '\\' { backslashes + 1 } else { 0 };
            text.push(c);
        }
        Err(format!("the quote {quote} is not closed"))
    }

    /// Unquoted text, a cast, or a text with interpolations.
    fn primitive(&mut self, closers: &str) -> Result<Value, String> {
        let mut text = String::new();
        let mut plain = true;
        while let Some(&c) = self.chars.peek() {
            if c == ',' || closers.contains(c) {
                break;
            }
            self.chars.next();
            match c {
                '\\' => match self.chars.peek() {
                    Some(&escaped) if "\\()[]{}:=, \t".contains(escaped) => {
                        self.chars.next();
                        plain = false;
                        text.push(escaped);
                    }
                    _ => text.push('\\'),
                },
                '$' if self.chars.peek() == Some(&'{') => {
                    plain = false;
                    text.push_str(&self.interpolation()?);
                }
                '(' => return self.cast(&text),
                c if c.is_ascii_alphanumeric() || "_/-+.$%*@?|: \t".contains(c) => text.push(c),
                other => return Err(unexpected(other)),
            }
        }
        let text = if plain { text.trim() } else { text.trim_end() };
        Ok(if plain && !text.is_empty() { scalar::from_override(text) } else { Value::Text(text.to_string()) })
    }

    /// `${…}` as it stands; it is resolved once the whole configuration is there.
    fn interpolation(&mut self) -> Result<String, String> {
        let mut text = String::from("$");
        for c in self.chars.by_ref() {
            if c == '{' && text.len() > 1 {
                return Err("`${…}` inside `${…}` must be in quotes".into());
            }
            text.push(c);
            if c == '}' {
                return Ok(text);
            }
        }
        Err("this `${` has no closing `}`".into())
    }

    fn cast(&mut self, name: &str) -> Result<Value, String> {
        if !CASTS.contains(&name) {
            let reason = format!("`{name}(…)` is not available; a text with ( or ) must be in quotes");
            return Err(if name.is_empty() { unexpected('(') } else { reason });
        }
        let argument = self.element(")")?.value;
        if self.chars.next() != Some(')') {
            return Err(format!("`{name}(…)` takes one value"));
        }
        let text = argument.plain_text().ok_or_else(|| format!("`{name}(…)` takes a number, a text or a bool"))?;
        let number = match argument {
            Value::Int(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            Value::Bool(value) => Some(f64::from(value)),
            _ => text.parse().ok(),
        };
        let wrong = || format!("`{text}` cannot be made a {name}");
        match name {
            "str" => Ok(Value::Text(text)),
            "int" => number.map(|value| Value::Int(value as i64)).ok_or_else(wrong),
            "float" => number.map(Value::Float).ok_or_else(wrong),
            _ => match (text.to_ascii_lowercase().as_str(), number) {
                ("true" | "yes" | "on", _) => Ok(Value::Bool(true)),
                ("false" | "no" | "off", _) => Ok(Value::Bool(false)),
                (_, Some(value)) => Ok(Value::Bool(value != 0.0)),
                _ => Err(wrong()),
            },
        }
    }

    /// Refuses `[a,]` and `{a: }`.
    fn not_empty(&mut self, closers: &str) -> Result<(), String> {
        self.skip_spaces();
        match self.chars.peek() {
            Some(c) if *c == ',' || closers.contains(*c) => Err(format!("a value is missing before `{c}`")),
            _ => Ok(()),
        }
    }

    fn skip_spaces(&mut self) {
        while self.chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
    }
}

fn unexpected(c: char) -> String {
    format!("`{c}` cannot stand here: put the text in quotes, as in key=\"'text'\"")
}
