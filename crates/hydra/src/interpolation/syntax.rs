//! The grammar of `${…}`, as in OmegaConf.

use crate::grammar::{DEEPEST, ESCAPABLE, SyntaxError, TOO_DEEP, in_word, is_name, unexpected};
use crate::scalar;
use crate::tree::Value;

/// A part of a text: literal text or an interpolation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextPart {
    Text(String),
    Inter(Interpolation),
}

/// The content of `${…}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Interpolation {
    /// `${a.b}`, `${.b}`, `${..c[0]}`.
    Key { dots: usize, names: Vec<Name> },
    /// `${oc.env:NAME,default}`.
    Call { function: Vec<Name>, arguments: Vec<Argument> },
}

/// One name of a dotted key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Name {
    Plain(String),
    Nested(Box<Interpolation>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Scalar(Value),
    /// Unquoted text with interpolations; a single interpolation keeps the type of its value.
    Parts(Vec<TextPart>),
    /// A quoted text, always a string.
    Quoted(Vec<TextPart>),
    List(Vec<Argument>),
    Map(Vec<(String, Argument)>),
}

/// Parses a whole text.
pub(crate) fn parse_text(text: &str) -> Result<Vec<TextPart>, SyntaxError> {
    Parser { text, at: 0, depth: 0 }.parts(None)
}

/// Parses a text that is one argument, for `oc.decode`.
pub(crate) fn parse_argument(text: &str) -> Result<Argument, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let argument = parser.argument(true)?;
    match parser.peek() {
        None => Ok(argument),
        Some(c) => parser.fail(unexpected(c)),
    }
}

/// Returns the syntax error of the first text in a value that does not follow the grammar.
pub fn check(value: &Value) -> Option<SyntaxError> {
    match value {
        Value::Text(text) if text.contains("${") => parse_text(text).err(),
        Value::Map(map) => map.iter().find_map(|(_, node)| check(&node.value)),
        Value::List(items) => items.iter().find_map(|node| check(&node.value)),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// Reads text and interpolations up to the closing quote, or to the end. A backslash escapes only `${` and the quote.
    fn parts(&mut self, quote: Option<char>) -> Result<Vec<TextPart>, SyntaxError> {
        let start = self.at;
        let mut parts = vec![];
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                if let Some(quote) = quote {
                    return Err(SyntaxError { at: start, message: format!("the quote {quote} is not closed") });
                }
                break;
            };
            let backslashes = self.rest().len() - self.rest().trim_start_matches('\\').len();
            let behind = &self.rest()[backslashes..];
            let ends = quote.is_some_and(|quote| behind.starts_with(quote));
            match c {
                '\\' if behind.starts_with("${") || ends => {
                    text.push_str(&"\\".repeat(backslashes / 2));
                    self.at += backslashes;
                    if backslashes % 2 == 1 {
                        let escaped = if ends { 1 } else { 2 };
                        text.push_str(&self.rest()[..escaped]);
                        self.at += escaped;
                    }
                }
                '\\' => {
                    text.push_str(&"\\".repeat(backslashes));
                    self.at += backslashes;
                }
                '$' if behind.starts_with("${") => {
                    if !text.is_empty() {
                        parts.push(TextPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(TextPart::Inter(self.deeper(Self::interpolation)?));
                }
                c => {
                    self.at += c.len_utf8();
                    if ends {
                        break;
                    }
                    text.push(c);
                }
            }
        }
        if !text.is_empty() {
            parts.push(TextPart::Text(text));
        }
        Ok(parts)
    }

    /// Runs a nested step of the parser, and fails beyond the maximum depth.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        if self.depth == DEEPEST {
            return self.fail(TOO_DEEP);
        }
        self.depth += 1;
        let inside = read(self);
        self.depth -= 1;
        inside
    }

    /// Reads the `${…}` at the current position.
    fn interpolation(&mut self) -> Result<Interpolation, SyntaxError> {
        let start = self.at;
        self.at += 2;
        self.skip_spaces();
        let dots = self.rest().len() - self.rest().trim_start_matches('.').len();
        self.at += dots;
        let mut names = vec![];
        let mut brackets = false;
        loop {
            if self.peek() == Some('[') {
                brackets = true;
                self.at += 1;
                names.push(self.name()?);
                self.expect(']', start)?;
            } else {
                names.push(self.name()?);
            }
            match self.peek() {
                Some('.') => self.at += 1,
                Some('[') => {}
                _ => break,
            }
        }
        self.skip_spaces();
        match self.peek() {
            Some('}') => {
                self.at += 1;
                Ok(Interpolation::Key { dots, names })
            }
            Some(':') => {
                let is_function = |name: &Name| !matches!(name, Name::Plain(name) if !is_name(name));
                if dots > 0 || brackets || !names.iter().all(is_function) {
                    return self.fail("the text before the `:` must be the name of a function, such as oc.env");
                }
                self.at += 1;
                self.skip_spaces();
                let arguments = self.arguments('}', start)?;
                Ok(Interpolation::Call { function: names, arguments })
            }
            Some(c) => self.fail(format!("`{c}` is not allowed in a key")),
            None => Err(unclosed(start)),
        }
    }

    fn name(&mut self) -> Result<Name, SyntaxError> {
        if self.rest().starts_with("${") {
            return Ok(Name::Nested(Box::new(self.deeper(Self::interpolation)?)));
        }
        let length = self.rest().find(|c| "\\{}()[]:. \t'\"".contains(c)).unwrap_or(self.rest().len());
        let name = self.rest()[..length].to_string();
        if name.is_empty() {
            return self.fail("a key is missing in this `${…}`");
        }
        self.at += length;
        Ok(Name::Plain(name))
    }

    /// Reads arguments up to `close`. An omitted argument is an empty string.
    fn arguments(&mut self, close: char, start: usize) -> Result<Vec<Argument>, SyntaxError> {
        let empty = || Argument::Scalar(Value::Text(String::new()));
        let mut arguments = vec![];
        let mut needs_value = false;
        loop {
            match self.peek() {
                Some(c) if c == close => {
                    self.at += 1;
                    arguments.extend(needs_value.then(empty));
                    return Ok(arguments);
                }
                Some(',') => arguments.push(empty()),
                Some(_) => arguments.push(self.argument(false)?),
                None => return Err(unclosed(start)),
            }
            self.skip_spaces();
            needs_value = self.peek() == Some(',');
            if needs_value {
                self.at += 1;
                self.skip_spaces();
            } else if self.peek() != Some(close) {
                return match self.peek() {
                    Some(c) => self.fail(unexpected(c)),
                    None => Err(unclosed(start)),
                };
            }
        }
    }

    /// Reads one argument. Surrounding spaces belong to the argument if it is the `whole` text.
    fn argument(&mut self, whole: bool) -> Result<Argument, SyntaxError> {
        let start = self.at;
        match self.peek() {
            Some('[') => {
                self.at += 1;
                self.skip_spaces();
                Ok(Argument::List(self.deeper(|parser| parser.arguments(']', start))?))
            }
            Some('{') => self.deeper(Self::map),
            Some(quote @ ('\'' | '"')) => {
                self.at += 1;
                Ok(Argument::Quoted(self.parts(Some(quote))?))
            }
            _ => self.word(whole),
        }
    }

    fn map(&mut self) -> Result<Argument, SyntaxError> {
        let start = self.at;
        let mut entries = vec![];
        self.at += 1;
        self.skip_spaces();
        while self.peek() != Some('}') {
            let key_start = self.at;
            let length = self.rest().find(|c: char| !(in_word(c) || c == ' ' || c == '\t')).unwrap_or(self.rest().len());
            let written = self.rest()[..length].trim_end();
            let key = scalar::from_word(written).map_err(|message| SyntaxError { at: key_start, message })?;
            let key = key.plain_text().filter(|_| !written.is_empty() && key != Value::Null);
            self.at += length;
            let Some(key) = key.filter(|_| self.peek() == Some(':')) else {
                return self.fail("write a mapping as {key: value, key: value}");
            };
            self.at += 1;
            self.skip_spaces();
            entries.push((key, self.argument(false)?));
            self.skip_spaces();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => break,
                Some(c) => return self.fail(unexpected(c)),
                None => return Err(unclosed(start)),
            }
            self.skip_spaces();
            if self.peek() == Some('}') {
                return self.fail("a value is missing before `}`");
            }
        }
        self.at += 1;
        Ok(Argument::Map(entries))
    }

    fn word(&mut self, whole: bool) -> Result<Argument, SyntaxError> {
        let start = self.at;
        let mut parts = vec![];
        let mut text = String::new();
        let mut special = false;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => {
                    // All spaces at once: a search for their end from each space would take quadratic time.
                    let behind = self.rest().trim_start_matches([' ', '\t']);
                    if !whole && behind.starts_with([',', ']', '}']) {
                        break;
                    }
                    let spaces = self.rest().len() - behind.len();
                    text.push_str(&self.rest()[..spaces]);
                    self.at += spaces;
                }
                ',' | ']' | '}' => break,
                '$' if self.rest().starts_with("${") => {
                    if !text.is_empty() {
                        parts.push(TextPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(TextPart::Inter(self.deeper(Self::interpolation)?));
                    special = true;
                }
                '\\' => {
                    let escaped = self.rest()[1..].chars().next().filter(|c| ESCAPABLE.contains(*c));
                    text.push(escaped.unwrap_or('\\'));
                    special |= escaped.is_some();
                    self.at += 1 + usize::from(escaped.is_some());
                }
                c if in_word(c) || c == ':' => {
                    text.push(c);
                    self.at += 1;
                }
                c => return self.fail(unexpected(c)),
            }
        }
        if self.at == start {
            return self.fail(self.peek().map_or("a value is missing".into(), |c| format!("a value is missing before `{c}`")));
        }
        if !special {
            let value = scalar::from_word(&text).map_err(|message| SyntaxError { at: start, message })?;
            return Ok(Argument::Scalar(value));
        }
        if !text.is_empty() {
            parts.push(TextPart::Text(text));
        }
        Ok(Argument::Parts(parts))
    }

    fn expect(&mut self, c: char, start: usize) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(next) if next == c => {
                self.at += 1;
                Ok(())
            }
            Some(next) => self.fail(format!("expected `{c}`, not `{next}`")),
            None => Err(unclosed(start)),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.at, message: message.into() })
    }
}

fn unclosed(start: usize) -> SyntaxError {
    SyntaxError { at: start, message: "this is not closed".into() }
}
